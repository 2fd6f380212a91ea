"""Medical questions: LasseRegin's medical-question-answer-data (forums, JSON) and MedQuAD (NIH pages, XML).

MedQuAD: Ben Abacha and Demner-Fushman, BMC Bioinformatics 2019. Three of its collections come without answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from experiments.corpora.lines import document, spaced
from experiments.corpora.question_answers import Answered
from experiments.corpora.xml_elements import elements, inner_text
from matchloom.types import MatchloomError


class _Post(msgspec.Struct):
    question: str
    answer: str
    url: str = ""


def forum_questions(path: Path) -> Iterator[Answered]:
    """The questions of `<forum>QAs.json`; a group is a page."""
    source = f"lasseregin:{path.name.removesuffix('.gz').removesuffix('.json')}"
    for post in document(path, list[_Post]):
        yield Answered(source, spaced(post.url), spaced(post.question), spaced(post.answer))


def medquad_questions(path: Path) -> Iterator[Answered]:
    """The questions of one page, which is a file in the folder of its collection; a group is a page."""
    for where, page in elements([path], "Document"):
        if not page.get("id"):
            raise MatchloomError(f"{where}: a <Document> without an id")
        for pair in page.iter("QAPair"):
            question, answer = inner_text(pair, "Question"), inner_text(pair, "Answer")
            if question and answer:
                yield Answered(f"medquad:{path.absolute().parent.name}", spaced(page.get("id", "")), question, answer)
