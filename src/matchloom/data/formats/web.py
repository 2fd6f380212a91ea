"""Questions and answers of an HTML page: what it says to search engines, or its terms, summaries and headings."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from matchloom.basics.files import UTF8_BOM, open_utf8
from matchloom.data.formats.columns import Columns
from matchloom.data.formats.headings import QUESTION_LEVEL, Heading, Paragraph, question_rows
from matchloom.data.formats.html_text import BLOCKS, RAW, Tag, Text, tidy, tokens
from matchloom.data.formats.markdown import refuse_columns
from matchloom.data.formats.records import NamedRows
from matchloom.data.formats.row import Found, LeftOut, Row
from matchloom.types import MatchloomError

_MOST = 50_000_000  # bytes of a page
_HIDDEN = frozenset({"nav", "footer"})
_ASKING = frozenset({"dt", "summary"})
_BOLD = frozenset({"b", "strong", "button"})


def html_rows(path: Path, given: Columns | None) -> Iterator[Found]:
    """The questions of an HTML page: those of its FAQPage in JSON-LD where it has one, else those of its headings."""
    refuse_columns(path, given, "HTML")
    source = _read(path)
    starts = [0, *(i + 1 for i, letter in enumerate(source) if letter == "\n")]
    named = list(_linked_data(source, starts))
    if any(isinstance(found, Row) for found in named):
        yield from named
    else:
        yield from question_rows(_blocks(source, starts))


def _read(path: Path) -> str:
    with open_utf8(path) as stream:
        content = stream.read(_MOST + 1)
    if len(content) > _MOST:
        raise MatchloomError(f"{path}: a page of more than {_MOST:,} bytes is not read", code="too_large")
    try:
        return content.removeprefix(UTF8_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MatchloomError(
            f"{path}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8; "
            "if the page is Latin-1, convert it: iconv -f LATIN1 -t UTF-8 OLD > NEW",
            code="bad_row",
        ) from None


def _linked_data(source: str, starts: list[int]) -> Iterator[Found]:
    """The questions that a page tells search engines, in scripts of the type application/ld+json."""
    script = None
    for token in tokens(source):
        if isinstance(token, Tag):
            script = token if token.name == "script" and "ld+json" in token.attributes.lower() else None
        elif script is not None and "Question" in token.text:
            place = f"line {bisect_right(starts, token.at)}"
            try:
                found = json.loads(token.text)
            except (ValueError, RecursionError) as error:
                yield LeftOut(place, f"its JSON-LD is no JSON ({error})")
                continue
            yield from NamedRows("", None).rows_within(place, found)


def _blocks(source: str, starts: list[int]) -> Iterator[Heading | Paragraph]:
    """Headings and paragraphs of a page; what is hidden, and menus, are passed over."""
    parts: list[str] = []
    inside = ""  # the heading's tag that is open, in which other blocks may stand
    level = line = hidden = bold = 0
    plain = False  # whether a paragraph has words that are not bold
    for token in tokens(source):
        if isinstance(token, Text):
            if not hidden:
                parts.append(" ".join(f"_{token.text}_".split())[1:-1])
                plain = plain or (not bold and bool(token.text.strip()))
            continue
        step = -1 if token.closing else 1
        if token.name in _HIDDEN or token.name in RAW:
            hidden = max(0, hidden + step)
        if token.name == "br":
            parts.append("\n")
        elif token.name in BLOCKS:
            yield from _finished(parts, level, line or 1, asks=not plain)
            parts, plain, line = [], False, bisect_right(starts, token.at)
            if (token.closing and token.name == inside) or token.name == "dd":
                inside, level = "", 0
            elif not token.closing and _level(token.name):
                inside, level = token.name, _level(token.name)
        if token.name in _BOLD:
            bold = max(0, bold + step)
    yield from _finished(parts, level, line or 1, asks=not plain)


def _level(name: str) -> int:
    return int(name[1]) if name[0] == "h" and name[1:].isdigit() else QUESTION_LEVEL if name in _ASKING else 0


def _finished(parts: list[str], level: int, line: int, *, asks: bool) -> Iterator[Heading | Paragraph]:
    """The block of these parts; a paragraph in bold type that asks is a heading."""
    text = tidy("".join(parts))
    one_line = " ".join(text.split())
    bold_question = asks and one_line.endswith(("?", "？")) and len(one_line) < 300
    if text and (level or bold_question):
        yield Heading(level or QUESTION_LEVEL, one_line, line)
    elif text:
        yield Paragraph(text)
