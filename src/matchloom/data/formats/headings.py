"""Questions and answers of a document: headings that ask, and what stands under them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from matchloom.data.formats.html_text import tidy
from matchloom.data.formats.records import made_row
from matchloom.data.formats.row import Found, LeftOut

QUESTION_LEVEL = 7  # below every heading: a summary, a term, a line in bold type, "Q:"
_ASKS = re.compile(r"[?？؟]\W*$")
_NUMBER = re.compile(r"^(?:\(?\d{1,3}[.):]|Q\d{0,3}[.:)]|[-*•])\s+", re.I)


class Heading(NamedTuple):
    """A heading: its level (1 is the highest), its text, and the line on which it stands."""

    level: int
    text: str
    line: int


class Paragraph(NamedTuple):
    """What stands between headings."""

    text: str


class _Section(NamedTuple):
    heading: Heading
    above: tuple[str, ...]
    texts: list[str]


def question_rows(blocks: Iterable[Heading | Paragraph]) -> Iterator[Found]:
    """A row for each heading that is a question.

    Where headings end with a question mark, or are marked as questions, these are the questions: what follows belongs
    to one up to the next question, or the next heading of its level or above. Where none does, each heading with a text
    of its own is one. The headings above become the column `section`.
    """
    sections = _sections(blocks)
    asking = any(_is_question(section.heading) for section in sections)
    for section in _joined(sections) if asking else sections:
        place = f"line {section.heading.line}"
        text = tidy("\n".join(section.texts))
        if asking and not _is_question(section.heading):
            if text:
                yield LeftOut(place, f"the text under {_short(section.heading.text)}, which is no question")
        elif text:
            above = " / ".join(section.above)
            yield made_row(place, _NUMBER.sub("", section.heading.text), text, {"section": above} if above else {})
        elif asking:
            yield LeftOut(place, f"nothing stands under {_short(section.heading.text)}")


def _sections(blocks: Iterable[Heading | Paragraph]) -> list[_Section]:
    """The headings, each with the text behind it up to the next one; text above the first is of none."""
    found: list[_Section] = []
    open_above: list[Heading] = []
    for block in blocks:
        if isinstance(block, Heading):
            while open_above and open_above[-1].level >= block.level:
                open_above.pop()
            above = tuple(heading.text for heading in open_above if not _is_question(heading))
            found.append(_Section(block, above, []))
            open_above.append(block)
        elif found:
            found[-1].texts.append(block.text)
    return found


def _joined(sections: Iterable[_Section]) -> Iterator[_Section]:
    """Sections of which a question has taken those below it that are no questions, with their headings."""
    question: _Section | None = None
    for section in sections:
        below = question is not None and section.heading.level > question.heading.level
        if question is not None and below and not _is_question(section.heading):
            question.texts.extend([section.heading.text, *section.texts])
            continue
        if question is not None:
            yield question
            question = None
        if _is_question(section.heading):
            question = section
        else:
            yield section
    if question is not None:
        yield question


def _is_question(heading: Heading) -> bool:
    return heading.level >= QUESTION_LEVEL or _ASKS.search(heading.text) is not None


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")
