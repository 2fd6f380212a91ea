"""What commands print: tables and JSON to standard output, notes to standard error; never what drives a terminal."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.table import Table

from matchloom.basics.screen import Screen, escaped_json, printable, screen

if TYPE_CHECKING:
    from matchloom.explanation import Explanation

WIDTH = 100  # where there is no terminal to ask
_REASONS = 3  # pairs of words shown beside a text


def console() -> Screen:
    """Standard output, where brackets in a user's text are brackets; in a pipe no colour, and COLUMNS or 100 wide."""
    printer = screen()
    if not printer.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        printer.width = WIDTH
    return printer


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """A plain table; the columns in `right` are numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        numbers = column in right
        made.add_column(column, justify="right" if numbers else "left", no_wrap=numbers, overflow="fold")
    return made


def say(text: str = "", end: str = "\n") -> None:
    """One line to standard output, maybe behind an empty one."""
    print(_line(text), end=end, flush=True)


def note(text: str) -> None:
    """One line to standard error."""
    print(_line(text), file=sys.stderr, flush=True)


def _line(text: str) -> str:
    """Line ends inside came from a name or a text; those around it are ours."""
    inside = text.strip("\n")
    return text.replace(inside, printable(inside)) if inside else text


def print_json(value: Any) -> None:
    """One line of JSON; its letters are escaped where standard output could not write them or a terminal obeys them."""
    plain = str(sys.stdout.encoding).lower().replace("-", "") != "utf8"
    print(escaped_json(json.dumps(value, ensure_ascii=plain, allow_nan=False)), flush=True)


def in_words(explanation: Explanation) -> str:
    """The pairs of words that moved the score most, over all channels and places.

    Where the text is several, as the question and answer that a search found, each is named, and so is what such a
    score has beside words.
    """
    from matchloom.explanation import cells

    contributions: dict[str, float] = defaultdict(float)
    for cell in cells(explanation):
        same = cell.query_word == cell.text_word
        where = [f" ({name})" for name, start in explanation.sections if start <= cell.text_position][-1:]
        words = cell.query_word if same else f"{cell.query_word} ~ {cell.text_word}"
        contributions["".join([words, *where])] += cell.contribution
    if explanation.sections:
        for component in explanation.trace.components:
            contributions[component.name] += component.contribution
    strongest = sorted(contributions, key=lambda words: (-abs(contributions[words]), words))[:_REASONS]
    return ", ".join(f"{words} {contributions[words]:+.2f}" for words in strongest) or "nothing in common"


class PrintableLog(logging.Formatter):
    """Warnings of the library as a command shows them."""

    def format(self, record: logging.LogRecord) -> str:
        """On one line."""
        return printable(" ".join(super().format(record).split()))


@contextmanager
def without_native_noise() -> Iterator[None]:
    """Keep from the screen what LanceDB's Rust prints of its own panics: they are told in one line.

    Native code writes to file number 2, Python to sys.stderr, which gets a number of its own meanwhile. What was no
    panic is printed at the end.
    """
    try:
        real = os.dup(2)
        noise = tempfile.TemporaryFile()  # noqa: SIM115 (closed below)
    except OSError:  # no standard error, or nowhere to keep it
        yield
        return
    ours = sys.stderr
    with noise, os.fdopen(real, "w", buffering=1, encoding="utf-8", errors="backslashreplace") as moved:
        ours.flush()
        if _number(ours) == 2:
            sys.stderr = moved
        os.dup2(noise.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr = ours
            os.dup2(real, 2)
            noise.seek(0)
            kept = noise.read()
            if kept and b" panicked at " not in kept:
                os.write(2, kept)


def _number(stream: Any) -> int | None:
    try:
        return int(stream.fileno())
    except (OSError, ValueError, AttributeError):  # a test's
        return None
