"""A ranker's folder: `ranker.json`, `answers.jsonl` and, where they were learnt, tables of translations and weights.

Written together and sealed by digests in ranker.json, which also seals itself. Everything else is computed again. A
ranker with a pretrained encoder has the vectors of its texts as one more table, and the encoder as a matcher in
`encoder/`, which seals itself; the digest of that seal is in ranker.json.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from matchloom.basics.files import atomic_write, check_file, make_folder, sweep_leftovers
from matchloom.lexical.ibm_model1 import Translations
from matchloom.sealed import WRONG, as_saved
from matchloom.search.entries import Answers
from matchloom.search.features.svm import LinearWeights
from matchloom.types import MatchloomError

FORMAT = 2
SETTINGS, ANSWERS = "ranker.json", "answers.jsonl"
TRANSLATIONS, WEIGHTS, VECTORS = "translations.safetensors", "svm.safetensors", "meaning.safetensors"
ENCODER = "encoder"


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


def write_ranker(folder: Path, saved: SavedRanker) -> None:
    """Write all files or none."""
    make_folder(folder)
    sweep_leftovers(folder)
    contents = {ANSWERS: "".join(_lines(saved.answers)).encode(errors="replace")}
    tables = ((TRANSLATIONS, saved.translations), (WEIGHTS, saved.weights), (VECTORS, saved.vectors))
    contents |= {name: safetensors.numpy.save(table._asdict()) for name, table in tables if table is not None}
    about = {"format": FORMAT, **saved.settings}
    about["seals"] = {name: _sha(content) for name, content in contents.items()}
    about["seal"] = _seal(about)
    contents[SETTINGS] = (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode()
    with ExitStack() as stack:
        for name, content in contents.items():
            file = stack.enter_context(atomic_write(folder / name, "wb"))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # all are on the disk before the first takes its name
    for name, table in tables:
        if table is None:
            (folder / name).unlink(missing_ok=True)
    if saved.vectors is None:
        shutil.rmtree(folder / ENCODER, ignore_errors=True)


def read_ranker(folder: Path) -> SavedRanker:
    """Read the files. A folder that is missing, cut off, altered or newer is refused in one line."""
    check_file(folder / SETTINGS, f"{folder} has no {SETTINGS}, so it is no answer ranker; fit or copy it again")
    try:
        about = json.loads((folder / SETTINGS).read_bytes())
        version, seal, seals = int(about["format"]), about.pop("seal"), dict(about["seals"])
    except OSError as error:
        raise MatchloomError(
            f"{folder / SETTINGS} cannot be read: {error.strerror or error}; check its permissions"
        ) from None
    except WRONG:
        raise MatchloomError(f"{folder / SETTINGS} is damaged or cut off; fit or copy the ranker again") from None
    if version != FORMAT:
        remedy = "upgrade matchloom" if version > FORMAT else "fit the ranker again"
        raise MatchloomError(f"{folder} has format {version}, this matchloom reads format {FORMAT}; {remedy}")
    if seal != _seal(about) or not seals.keys() <= {ANSWERS, TRANSLATIONS, WEIGHTS, VECTORS} or ANSWERS not in seals:
        raise MatchloomError(f"{folder / SETTINGS} was altered since the ranker was saved; copy or fit it again")
    contents: dict[str, bytes] = {}
    for name, expected in seals.items():
        try:
            contents[name] = (folder / name).read_bytes()
        except OSError as error:
            raise MatchloomError(f"{folder / name} cannot be read ({error.strerror}); copy the ranker again") from None
        if _sha(contents[name]) != expected:
            raise MatchloomError(f"{folder / name} was altered since the ranker was saved; copy or fit it again")
    with as_saved(folder, "copy or fit the ranker again"):
        rows = [json.loads(line) for line in contents[ANSWERS].decode().split("\n") if line]
        names, texts, questions, other_ids, other_texts = (
            [row.get(key, []) for row in rows] for key in ("id", "text", "questions", "other_ids", "other_texts")
        )
        answers = Answers(names, texts, questions, other_ids, other_texts)
        tables = {name: safetensors.numpy.load(content) for name, content in contents.items() if name != ANSWERS}
        translations = Translations(**tables[TRANSLATIONS]) if TRANSLATIONS in tables else None
        weights = LinearWeights(**tables[WEIGHTS]) if WEIGHTS in tables else None
        vectors = MeaningVectors(**tables[VECTORS]) if VECTORS in tables else None
    return SavedRanker(about, answers, translations, weights, vectors)


def encoder_seal(folder: Path) -> str:
    """What tells the encoder in a ranker's folder from others: the digest of its weights' header, which seals all."""
    with (folder / ENCODER / "weights.safetensors").open("rb") as file:
        return _sha(file.read(int.from_bytes(file.read(8), "little")))


def _lines(answers: Answers) -> list[str]:
    lines = []
    for n, (name, text, questions) in enumerate(zip(answers.ids, answers.texts, answers.questions, strict=True)):
        row: dict[str, Any] = {"id": name, "text": text, "questions": list(questions)}
        for key, side in (("other_ids", answers.other_ids), ("other_texts", answers.other_texts)):
            if side and side[n]:
                row[key] = list(side[n])
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return lines


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _seal(about: dict[str, Any]) -> str:
    return _sha(json.dumps(about, sort_keys=True).encode())
