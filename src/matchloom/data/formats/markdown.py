"""Questions and answers of a Markdown file: headings, summaries, lines in bold type and `Q:`, with what follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from matchloom.basics.files import read_lines
from matchloom.data.formats.columns import Columns
from matchloom.data.formats.headings import QUESTION_LEVEL, Heading, Paragraph, question_rows
from matchloom.data.formats.html_text import has_tags, html_text
from matchloom.data.formats.row import Found
from matchloom.types import MatchloomError

_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_RULE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_BOLD = re.compile(r"\s*(?:[-*]\s+|\d+[.)]\s+)?(\*\*|__)(.+?[?？])\s*\1\s*$")
_ASKS = re.compile(r"\s*(?:\*\*|__)?(?:Q\d{0,3}|Question|Frage|Pregunta|Pergunta|问|問|質問)\s*[:.：]\s*(.+)$", re.I)
_ANSWERS = re.compile(
    r"\s*(?:\*\*|__)?(?:A\d{0,3}|Answer|Antwort|Réponse|Respuesta|Resposta|答|回答)\s*[:.：](?:\*\*|__)?\s*", re.I
)
_SUMMARY = re.compile(r".*<summary[^>]{0,200}>(.*?)(?:</summary>(.*))?$", re.I)
_IMAGE = re.compile(r"!\[([^\]\n]{0,500})\]\([^)\n]{0,2000}\)")
_LINK = re.compile(r"\[([^\]\n]{1,500})\](?:\([^)\n]{0,2000}\)|\[[^\]\n]{0,200}\])")
_MARKS = re.compile(r"\*\*|__|~~|`+|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_ANCHOR = re.compile(r"\s*\{#[^}]{0,200}\}\s*$")


def markdown_rows(path: Path, given: Columns | None) -> Iterator[Found]:
    """The questions of a Markdown file."""
    refuse_columns(path, given, "Markdown")
    return question_rows(_blocks((number, line.rstrip("\r\n")) for number, line in read_lines(path)))


def refuse_columns(path: Path, given: Columns | None, kind: str) -> None:
    """Say that a document has no columns to name."""
    if given and any(given.values()):
        raise MatchloomError(f"{path}: {kind} has headings and no columns; leave out columns=", code="conflict")


def _blocks(lines: Iterator[tuple[int, str]]) -> Iterator[Heading | Paragraph]:
    fence = comment = ""
    before: tuple[int, str] | None = None  # a line that the next one may make a heading
    for number, line in _without_front_matter(lines):
        opened = _FENCE.match(line)
        if fence or opened:
            if opened:
                fence = "" if fence == opened[1] else fence or opened[1]
            else:
                yield Paragraph(line)
            continue
        if comment or line.lstrip().startswith("<!--"):
            comment = "" if "-->" in line else "open"
            continue
        rule = _RULE.match(line)
        if rule and before and (rule[1][0] == "=" or len(rule[1]) > 1):
            yield Heading(1 if rule[1][0] == "=" else 2, _plain(before[1]), before[0])
            before = None
            continue
        if before:
            yield Paragraph(_plain(before[1]))
            before = None
        blocks = list(_of_line(number, line))
        if blocks:
            yield from blocks
        elif line.strip():
            before = (number, line)
        else:
            yield Paragraph("")
    if before:
        yield Paragraph(_plain(before[1]))


def _of_line(number: int, line: str) -> Iterator[Heading | Paragraph]:
    """What a line is that says it alone; nothing for a line of text."""
    if heading := _ATX.match(line):
        yield Heading(len(heading[1]), _plain(_ANCHOR.sub("", heading[2])), number)
    elif summary := _SUMMARY.match(line):
        yield Heading(QUESTION_LEVEL, _plain(summary[1]), number)
        if (summary[2] or "").strip():
            yield Paragraph(_plain(summary[2]))
    elif bold := _BOLD.match(line):
        yield Heading(QUESTION_LEVEL, _plain(bold[2]), number)
    elif asks := _ASKS.match(line):
        yield Heading(QUESTION_LEVEL, _plain(asks[1]), number)
    elif answers := _ANSWERS.match(line):
        yield Paragraph(_plain(line[answers.end() :]))


def _without_front_matter(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    inside = False
    for number, line in lines:
        if number == 1 and line.rstrip() == "---":
            inside = True
        elif inside:
            inside = line.rstrip() not in ("---", "...")
        else:
            yield number, line


def _plain(line: str) -> str:
    """A line without marks: of links and images the words, no stars and backticks."""
    line = _LINK.sub(r"\1", _IMAGE.sub(r"\1", line))
    line = _MARKS.sub("", line)
    return html_text(line) if has_tags(line) or "<" in line else line.strip()
