"""A ranker's folder: `ranker.json`, `answers.jsonl` and, where they were learnt, tables of translations and weights.

Saved as one artifact; everything else is computed again. A ranker with a pretrained encoder has the vectors of its
texts as one more table, and the encoder as a matcher inside.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from matchloom.artifact import Saveable, as_saved, packed, read, write
from matchloom.lexical.ibm_model1 import Translations
from matchloom.search.entries import Answers
from matchloom.search.features.svm import LinearWeights

FORMAT = 3  # 2 had checksums of its own
ANSWERS = "answers.jsonl"
TRANSLATIONS, WEIGHTS, VECTORS = "translations.safetensors", "svm.safetensors", "meaning.safetensors"
ENCODER = "encoder"
REMEDY = "copy or fit the ranker again"


class MeaningVectors(NamedTuple):
    """What the encoder made of the different questions and of the answers' texts, in the order of their ids."""

    questions: NDArray[np.float32]
    texts: NDArray[np.float32]


class SavedRanker(NamedTuple):
    """What the files hold."""

    settings: dict[str, Any]
    answers: Answers
    translations: Translations | None
    weights: LinearWeights | None
    vectors: MeaningVectors | None = None


def write_ranker(folder: Path, saved: SavedRanker, encoder: Saveable | None) -> None:
    """Write all files or none."""
    files = {ANSWERS: dump_answers(saved.answers)}
    tables = ((TRANSLATIONS, saved.translations), (WEIGHTS, saved.weights), (VECTORS, saved.vectors))
    files |= {name: packed(table._asdict()) for name, table in tables if table is not None}
    write(folder, "ranker", FORMAT, saved.settings, files, inside={} if encoder is None else {ENCODER: encoder})


def read_ranker(folder: Path) -> tuple[SavedRanker, Any]:
    """Read the files, and the encoder if there is one. What is missing, cut off, altered or newer is refused."""
    found = read(folder, "ranker", FORMAT, remedy=REMEDY)
    with as_saved(folder, REMEDY):
        answers = load_answers(found.content(ANSWERS))
        tables = {name: found.tensors(name, finite=True) for name in (TRANSLATIONS, WEIGHTS, VECTORS) if name in found}
        translations = Translations(**tables[TRANSLATIONS]) if TRANSLATIONS in tables else None
        weights = LinearWeights(**tables[WEIGHTS]) if WEIGHTS in tables else None
        vectors = MeaningVectors(**tables[VECTORS]) if VECTORS in tables else None
    encoder = None if vectors is None else found.inside(ENCODER)
    return SavedRanker(found.settings, answers, translations, weights, vectors), encoder


def dump_answers(answers: Answers) -> bytes:
    """A line of JSON for each answer, with its questions."""
    lines = []
    for n, (name, text, questions) in enumerate(zip(answers.ids, answers.texts, answers.questions, strict=True)):
        row: dict[str, Any] = {"id": name, "text": text, "questions": list(questions)}
        for key, side in (("other_ids", answers.other_ids), ("other_texts", answers.other_texts)):
            if side and side[n]:
                row[key] = list(side[n])
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return "".join(lines).encode(errors="replace")


def load_answers(content: bytes) -> Answers:
    """What `dump_answers` gave; anything else raises as msgspec does."""
    rows = [msgspec.json.decode(line, type=_Row) for line in content.split(b"\n") if line]
    others = ([row.other_ids for row in rows], [row.other_texts for row in rows])
    return Answers([row.id for row in rows], [row.text for row in rows], [row.questions for row in rows], *others)


class _Row(msgspec.Struct):
    """How a line of answers.jsonl must look."""

    id: str
    text: str
    questions: list[str]
    other_ids: list[str] = []
    other_texts: list[str] = []
