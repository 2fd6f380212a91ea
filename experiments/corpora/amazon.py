"""Amazon question/answer data (McAuley and Yang, WWW 2016; Wan and McAuley, ICDM 2016): questions about products.

`qa_<Category>.json.gz` has a question and an answer a line, `QA_<Category>.json.gz` the questions of a product with
all their answers. Despite the name most lines are no JSON but Python's way to write a dictionary.
"""

from __future__ import annotations

import ast
import html
import warnings
from collections.abc import Iterator
from pathlib import Path

import msgspec

from experiments.corpora.lines import numbered_lines, spaced
from experiments.corpora.question_answers import Answered
from matchloom.types import MatchloomError


class _Single(msgspec.Struct):
    asin: str
    question: str
    answer: str


class _AnswerText(msgspec.Struct):
    answerText: str  # noqa: N815


class _QuestionText(msgspec.Struct):
    questionText: str  # noqa: N815
    answers: list[_AnswerText]


class _Product(msgspec.Struct):
    asin: str
    questions: list[_QuestionText]


def amazon_questions(path: Path) -> Iterator[Answered]:
    """The questions of one file; of several answers the first."""
    category = path.name.removesuffix(".gz").removesuffix(".json").partition("_")[2]
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        value = _literal(line, f"{path}, line {number}")
        several = isinstance(value, dict) and "questions" in value
        try:
            if several:
                product = msgspec.convert(value, _Product)
                found = [(one.questionText, one.answers[0].answerText) for one in product.questions if one.answers]
                group, source = product.asin, f"amazon:{category}_multi"
            else:
                single = msgspec.convert(value, _Single)
                found, group, source = [(single.question, single.answer)], single.asin, f"amazon:{category}"
        except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the second of half a character
            raise MatchloomError(f"{path}, line {number}: {error}") from None
        for question, answer in found:
            yield Answered(source, spaced(group), spaced(html.unescape(question)), spaced(html.unescape(answer)))


def _literal(line: str, where: str) -> object:
    """A line of JSON, or a literal of Python, which is parsed and never run."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of \\d and the like in a literal
            return ast.literal_eval(line.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise MatchloomError(f"{where}: neither JSON nor a dictionary of Python; is the line whole?") from None
