"""InsuranceQA: insurance questions in English and Chinese, answered from one pool (Feng et al., ASRU 2015)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from experiments.corpora.insuranceqa_layouts import Language, Layout, Question, Split, layout_of
from experiments.corpora.lines import write_records, write_table
from matchloom.data.truncation import first_words
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair

__all__ = ["Language", "Split", "insuranceqa_answers", "insuranceqa_lists", "read_insuranceqa", "write_insuranceqa"]


def read_insuranceqa(
    folder: Path | str,
    split: Split,
    *,
    language: Language = "en",
    gold: Literal["first", "all"] = "first",
    truncate: Tokenizer | None = None,
) -> list[Pair]:
    """Read the questions of a split with their first right answer, or with all of them, as positive pairs.

    The folder is that of the release, V1 or V2, of Chatopera's JSON (English and Chinese), or of this project's own
    layout (`{train,valid,test}.jsonl.gz`, `answers.{en,zh}.tsv.gz`). V1's dev is `valid`, its two test sets are `test`
    and `test2`. Answers run to hundreds of words: `truncate=Tokenizer("english", max_words=50)` keeps the first 50.
    """
    if gold not in ("first", "all"):
        raise MatchloomError(f"gold {gold!r} of InsuranceQA is unknown; choose first or all")
    pairs = []
    for where, question, pool in _questions(folder, split, language, truncate):
        for answer in question.answers[:1] if gold == "first" else question.answers:
            pairs.append(_pair(question, answer, 1.0, pool, language, where))
    return pairs


def insuranceqa_lists(
    folder: Path | str, split: Split, *, language: Language = "en", truncate: Tokenizer | None = None
) -> Iterator[Pair]:
    """Yield each question's own candidate list: all its right answers and the others published with it.

    These are 200 in Chatopera's JSON and this project's own layout, a pool of 500 in V1 (its training questions have
    none), and in V2 a pool of 500 or, without that file, of the smallest size that is there.
    """
    for where, question, pool in _questions(folder, split, language, truncate):
        for answers, label in ((question.answers, 1.0), (question.negatives, 0.0)):
            for answer in answers:
                yield _pair(question, answer, label, pool, language, where)


def insuranceqa_answers(
    folder: Path | str, *, language: Language = "en", truncate: Tokenizer | None = None
) -> dict[str, str]:
    """The whole pool of answers by id: every answer of every split, the collection to search in."""
    return _answers(_layout(folder, language), folder, language, truncate)


def write_insuranceqa(source: Path | str, folder: Path) -> dict[Path, int]:
    """Write a corpus of any layout in this project's own; Chinese only where the source has it.

    Args:
        source: The folder to read.
        folder: The folder to write to, which is there.
    """
    source = Path(source)
    english = _layout(source, "en")
    written = {}
    for language in ("en", "zh") if english.pool(source, "zh") else ("en",):
        path = folder / f"answers.{language}.tsv.gz"
        written[path] = write_table(path, english.answers(source, language))
    for split in ("train", "valid", "test"):
        path = folder / f"{split}.jsonl.gz"
        written[path] = write_records(path, (question for _, question in english.questions(source, split)))
    return written


def _layout(folder: Path | str, language: Language) -> Layout:
    if language not in ("en", "zh"):
        raise MatchloomError(f"language {language!r} of InsuranceQA is unknown; choose en or zh")
    return layout_of(Path(folder), language)


def _answers(layout: Layout, folder: Path | str, language: Language, truncate: Tokenizer | None) -> dict[str, str]:
    found = layout.answers(Path(folder), language)
    return {answer: text if truncate is None else first_words(text, truncate) for answer, text in found}


def _questions(
    folder: Path | str, split: Split, language: Language, truncate: Tokenizer | None
) -> Iterator[tuple[str, Question, dict[str, str]]]:
    if split not in ("train", "valid", "test", "test2"):
        raise MatchloomError(f"split {split!r} of InsuranceQA is unknown; choose train, valid or test (V1: or test2)")
    layout = _layout(folder, language)
    pool = _answers(layout, folder, language, truncate)
    for where, question in layout.questions(Path(folder), split):
        # The ids of each split start at 0 again.
        yield where, msgspec.structs.replace(question, id=f"{split}-{question.id}"), pool


def _pair(question: Question, answer: str, label: float, pool: dict[str, str], language: Language, where: str) -> Pair:
    if answer not in pool:
        raise MatchloomError(f"{where}: answer {answer!r} is not among the answers.{language}")
    return Pair(question.zh if language == "zh" else question.en, pool[answer], label, question.id, answer)
