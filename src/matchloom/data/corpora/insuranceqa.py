"""InsuranceQA V2: insurance questions in English and Chinese, answered from one pool (Feng et al., ASRU 2015)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from matchloom.data.corpora.cutting import first_words
from matchloom.data.corpora.lines import records, rows
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair

Split = Literal["train", "valid", "test"]
Language = Literal["en", "zh"]


class _Question(msgspec.Struct):
    id: str
    en: str
    zh: str
    answers: list[str]  # ids of right answers
    negatives: list[str]  # ids of 200 others


def read_insuranceqa(
    folder: Path | str,
    split: Split,
    *,
    language: Language = "en",
    gold: Literal["first", "all"] = "first",
    cut: Tokenizer | None = None,
) -> list[Pair]:
    """Read the questions of a split with their first right answer, or with all of them, as positive pairs.

    The folder holds `{train,valid,test}.jsonl.gz` and `answers.{en,zh}.tsv.gz`. Answers run to hundreds of words:
    `cut=Tokenizer("english", max_words=50)` keeps the first 50.
    """
    if gold not in ("first", "all"):
        raise MatchloomError(f"gold {gold!r} of InsuranceQA is unknown; choose first or all")
    pool = insuranceqa_answers(folder, language=language, cut=cut)
    pairs = []
    for path, number, question in _questions(folder, split):
        for answer in question.answers[:1] if gold == "first" else question.answers:
            pairs.append(_pair(question, answer, 1.0, pool, language, f"{path}, line {number}"))
    return pairs


def insuranceqa_lists(
    folder: Path | str, split: Split, *, language: Language = "en", cut: Tokenizer | None = None
) -> Iterator[Pair]:
    """Yield each question's own candidate list: all its right answers and the 200 others published with it."""
    pool = insuranceqa_answers(folder, language=language, cut=cut)
    for path, number, question in _questions(folder, split):
        for answers, label in ((question.answers, 1.0), (question.negatives, 0.0)):
            for answer in answers:
                yield _pair(question, answer, label, pool, language, f"{path}, line {number}")


def insuranceqa_answers(
    folder: Path | str, *, language: Language = "en", cut: Tokenizer | None = None
) -> dict[str, str]:
    """The whole pool of answers by id: every answer of every split, the collection to search in."""
    if language not in ("en", "zh"):
        raise MatchloomError(f"language {language!r} of InsuranceQA is unknown; choose en or zh")
    lines = rows(Path(folder) / f"answers.{language}.tsv.gz", ("id", "text"), header=False)
    return {answer: text if cut is None else first_words(text, cut) for _, (answer, text) in lines}


def _questions(folder: Path | str, split: Split) -> Iterator[tuple[Path, int, _Question]]:
    if split not in ("train", "valid", "test"):
        raise MatchloomError(f"split {split!r} of InsuranceQA is unknown; choose train, valid or test")
    path = Path(folder) / f"{split}.jsonl.gz"
    for number, question in records(path, _Question):
        # The ids of each split start at 0 again.
        yield path, number, msgspec.structs.replace(question, id=f"{split}-{question.id}")


def _pair(question: _Question, answer: str, label: float, pool: dict[str, str], language: Language, where: str) -> Pair:
    if answer not in pool:
        raise MatchloomError(f"{where}: answer {answer!r} is not in answers.{language}.tsv.gz")
    return Pair(question.zh if language == "zh" else question.en, pool[answer], label, question.id, answer)
