"""The four layouts in which InsuranceQA is found: this project's own, Chatopera's JSON, and the release's V2 and V1.

A layout is known by the file that holds its pool of answers. V1 and V2 write each word as its number (`idx_7`) and
have a vocabulary beside; they are English. Chatopera's JSON is V2 with 200 other answers a question, in English and in
a machine's Chinese; this project's own layout is made from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from experiments.corpora.lines import document, records, rows, spaced
from matchloom.basics.files import is_there
from matchloom.types import MatchloomError

Split = Literal["train", "valid", "test", "test2"]
Language = Literal["en", "zh"]


class Question(msgspec.Struct, kw_only=True):
    """A question in both languages (empty where a layout has one of them), its right answers and others, by id."""

    id: str = ""
    en: str
    zh: str = ""
    domain: str = ""
    answers: list[str]
    negatives: list[str]


class Layout(NamedTuple):
    """How a folder is read: the file of all answers, these by id, and the questions with where each stands."""

    pool: Callable[[Path, Language], Path | None]  # None: the folder is in another layout
    answers: Callable[[Path, Language], Iterator[tuple[str, str]]]
    questions: Callable[[Path, Split], Iterator[tuple[str, Question]]]


def layout_of(folder: Path, language: Language) -> Layout:
    """The layout of a folder that holds answers in this language."""
    for layout in (_OWN, _JSON, _V2, _V1):
        if layout.pool(folder, language) is not None:
            return layout
    names = f"answers.{language}.tsv.gz, answers.json"
    if language == "en":
        names += ", InsuranceQA.label2answer.raw.encoded.gz (V2), answers.label.token_idx (V1)"
    raise MatchloomError(f"{folder}: no answers of InsuranceQA ({language}) here; expected one of {names}")


def _first(folder: Path, *names: str) -> Path | None:
    """The first of these files that is there, plain or gzip."""
    both = (folder / name for given in names for name in (given, f"{given}.gz"))
    return next((path for path in both if is_there(path)), None)


def _needed(folder: Path, *names: str) -> Path:
    if (path := _first(folder, *names)) is None:
        raise MatchloomError(f"{folder}: {' and '.join(names)} not found; fetch the whole release")
    return path


# This project's own: {train,valid,test}.jsonl.gz, answers.{en,zh}.tsv.gz


def _own_pool(folder: Path, language: Language) -> Path | None:
    return _first(folder, f"answers.{language}.tsv")


def _own_answers(folder: Path, language: Language) -> Iterator[tuple[str, str]]:
    for _, (answer, text) in rows(_needed(folder, f"answers.{language}.tsv"), ("id", "text"), header=False):
        yield answer, text


def _own_questions(folder: Path, split: Split) -> Iterator[tuple[str, Question]]:
    path = _needed(folder, f"{split}.jsonl")
    for number, question in records(path, Question):
        if not question.id:
            raise MatchloomError(f"{path}, line {number}: a question without an id")
        yield f"{path}, line {number}", question


# Chatopera's: {train,valid,test}.json and answers.json, one object each


class _Answer(msgspec.Struct):
    en: str
    zh: str


def _json_pool(folder: Path, language: Language) -> Path | None:
    return _first(folder, "answers.json")


def _json_answers(folder: Path, language: Language) -> Iterator[tuple[str, str]]:
    for answer, text in document(_needed(folder, "answers.json"), dict[str, _Answer]).items():
        yield answer, spaced(text.zh if language == "zh" else text.en)


def _json_questions(folder: Path, split: Split) -> Iterator[tuple[str, Question]]:
    path = _needed(folder, f"{split}.json")
    for name, one in document(path, dict[str, Question]).items():
        yield f"{path}, {name!r}", msgspec.structs.replace(one, id=name, en=spaced(one.en), zh=spaced(one.zh))


# The release, words by number


def _vocabulary(folder: Path) -> dict[str, str]:
    return {index: word for _, (index, word) in rows(_needed(folder, "vocabulary"), ("index", "word"), header=False)}


def _decoded(text: str, words: dict[str, str], where: str) -> str:
    try:
        return spaced(" ".join(words[index] for index in text.split()))
    except KeyError as error:
        raise MatchloomError(f"{where}: {error} is not in the vocabulary") from None


def _encoded_answers(path: Path) -> Iterator[tuple[str, str]]:
    words = _vocabulary(path.parent)
    for number, (answer, text) in rows(path, ("answer", "words"), header=False):
        yield answer, _decoded(text, words, f"{path}, line {number}")


def _encoded_questions(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, Question]]:
    """Questions in the order of lines, which is what numbers them; a pool may repeat itself and hold right answers."""
    words = _vocabulary(path.parent)
    for number, fields in rows(path, columns, header=False):
        where, line = f"{path}, line {number}", dict(zip(columns, fields, strict=True))
        right = line["right answers"].split()
        if not right:
            raise MatchloomError(f"{where}: a question without a right answer")
        yield (
            where,
            Question(
                id=str(number - 1),
                en=_decoded(line["question"], words, where),
                domain=line.get("domain", ""),
                answers=right,
                negatives=[answer for answer in dict.fromkeys(line.get("pool", "").split()) if answer not in right],
            ),
        )


_V2_COLUMNS = ("domain", "question", "right answers", "pool")
_V2_POOL = re.compile(r"\.(\d+)\.pool\.solr\.")


def _v2_pool(folder: Path, language: Language) -> Path | None:
    # Raw words before tokens: they are the texts as they were written.
    names = (f"InsuranceQA.label2answer.{kind}.encoded" for kind in ("raw", "token"))
    return _first(folder, *names) if language == "en" else None


def _v2_answers(folder: Path, language: Language) -> Iterator[tuple[str, str]]:
    return _encoded_answers(_needed(folder, *(f"InsuranceQA.label2answer.{kind}.encoded" for kind in ("raw", "token"))))


def _v2_questions(folder: Path, split: Split) -> Iterator[tuple[str, Question]]:
    kind = "raw" if _first(folder, "InsuranceQA.label2answer.raw.encoded") else "token"
    pattern = f"InsuranceQA.question.anslabel.{kind}.*.pool.solr.{split}.encoded*"
    sizes = {int(found[1]): path for path in sorted(folder.glob(pattern)) if (found := _V2_POOL.search(path.name))}
    if not sizes:
        raise MatchloomError(f"{folder}: no {pattern} here; fetch the whole release")
    # The pools hold 100 to 1,500 answers; most figures are of 500.
    return _encoded_questions(sizes[500 if 500 in sizes else min(sizes)], _V2_COLUMNS)


def _v1_pool(folder: Path, language: Language) -> Path | None:
    return _first(folder, "answers.label.token_idx") if language == "en" else None


def _v1_answers(folder: Path, language: Language) -> Iterator[tuple[str, str]]:
    return _encoded_answers(_needed(folder, "answers.label.token_idx"))


def _v1_questions(folder: Path, split: Split) -> Iterator[tuple[str, Question]]:
    if split == "train":
        return _encoded_questions(_needed(folder, "question.train.token_idx.label"), ("question", "right answers"))
    name = {"valid": "dev", "test": "test1", "test2": "test2"}[split]
    path = _needed(folder, f"question.{name}.label.token_idx.pool")
    return _encoded_questions(path, ("right answers", "question", "pool"))


_OWN = Layout(_own_pool, _own_answers, _own_questions)
_JSON = Layout(_json_pool, _json_answers, _json_questions)
_V2 = Layout(_v2_pool, _v2_answers, _v2_questions)
_V1 = Layout(_v1_pool, _v1_answers, _v1_questions)
