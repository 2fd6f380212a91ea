"""Rows of TSV and CSV files, one in memory at a time; and how the first line of any table tells its columns."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from matchloom.basics.files import max_line, read_lines
from matchloom.data.formats.columns import Columns, find_columns, known_names
from matchloom.data.formats.helpdesk import article_of
from matchloom.data.formats.row import Found, LeftOut, Note, OwnColumns, Row, bad_row
from matchloom.data.formats.sheet_guard import unguarded
from matchloom.data.formats.values import number_of
from matchloom.types import MatchloomError

_SEPARATORS = (",", ";", "|", "\t")
_LOOKED_AT = 20  # lines that tell what parts the cells


class Table:
    """The columns of a table, known from its first line.

    Args:
        path: The file, for messages.
        given: What the user says of columns.
        where: What part of the file this is, such as a sheet.
    """

    def __init__(self, path: Path, given: Columns | None, where: str = "") -> None:
        self._path = path
        self._where = where
        self._given = given
        self._columns: dict[str, int] = {}
        self._expected = 0
        self._names: Sequence[str] = ()
        self._told_by = "header"

    def rows(self, place: str, cells: Sequence[str], remedy: str) -> Iterator[Found]:
        """What these cells are: nothing for the header, a note where there is none, a row."""
        if not self._columns:
            yield from self._first(cells)
            if self._told_by == "header":
                return
        if len(cells) != self._expected:
            yield bad_row(
                self._path,
                place,
                f"found {len(cells)} fields, expected {self._expected} as in the {self._told_by}; {remedy}",
            )
            return
        own = None if self._given else article_of(place, dict(zip(self._names, cells, strict=True)))
        values = {name: cells[i] for name, i in self._columns.items()}
        yield own or Row(place, values, OwnColumns(self._names, cells), self._columns)

    def _first(self, cells: Sequence[str]) -> Iterator[Note]:
        """Learn the columns. If these cells are data, a note says what was assumed."""
        self._expected = len(cells)
        self._names = cells
        if is_header(cells, self._given):
            self._columns = find_columns(f"{self._path}{self._where}", cells, self._given)
            return
        self._names = names = ("query", "text", "label")[: len(cells)]
        self._columns = {name: i for i, name in enumerate(names) if name not in (self._given or {})}
        self._told_by = "first line"
        assumed = f"it is taken as a pair, the columns as {', '.join(names)}"
        yield Note(f"the first line names no column that is known; {assumed}")


def is_header(cells: Sequence[str], given: Columns | None) -> bool:
    """Whether a first line names columns: what could be no pair does, and who names columns has a header."""
    data = len(cells) == 2 or (len(cells) == 3 and not math.isnan(number_of(cells[2]) or 0.0))
    return any((given or {}).values()) or not data or known_names(cells) > 0


def tsv_rows(path: Path, given: Columns | None) -> Iterator[Found]:
    """The rows of a TSV file, which knows no quotes."""
    table = Table(path, given)
    for number, line in read_lines(path):
        remedy = "TSV knows no quotes: a tab inside a text must go" if line.endswith("\n") else "is the file cut off?"
        line = line.removesuffix("\n").removesuffix("\r")
        if line:
            yield from table.rows(f"line {number}", [unguarded(cell) for cell in line.split("\t")], remedy)


def csv_rows(path: Path, given: Columns | None) -> Iterator[Found]:
    """The rows of a CSV file, whatever parts its cells."""
    table = Table(path, given)
    skipped, separator, lines = _separator((line for _, line in read_lines(path)), given)
    reader = csv.reader(lines, delimiter=separator, strict=True)
    remedy = f"texts with {separator!r} inside need quotes, or is the file cut off?"
    while True:
        place = f"line {skipped + reader.line_num + 1}"
        # The limit belongs to the whole process, and its usual value is less than a long text: lift it for one row.
        limit = csv.field_size_limit(max_line())
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise MatchloomError(
                f"{path}, {place}: this row is no CSV ({error}); is a quote left open, or the file cut off?",
                code="bad_row",
            ) from None
        finally:
            csv.field_size_limit(limit)
        if cells is None:
            return
        if len(cells) > 1 and not any(cells):  # a sheet's empty row
            yield LeftOut(place, "the row is empty")
        elif cells:  # an empty line has no cells
            yield from table.rows(place, [unguarded(cell) for cell in cells], remedy)


def _separator(lines: Iterator[str], given: Columns | None) -> tuple[int, str, Iterator[str]]:
    """How many lines to pass over, what parts the cells, and the lines to read.

    A spreadsheet may say it in a line of its own, `sep=;`. Else it is what parts the first line into the most known
    names, or if there are none, into a pair, or else the first lines into equally many cells.
    """
    read: list[str] = []
    for line in lines:
        read.append(line)
        words = line.strip("\r\n").strip('"')
        if len(words) == 5 and words.lower().startswith("sep="):
            return len(read), words[4], lines
        if line.strip():
            break
    first = len(read) - 1
    for line in lines:
        read.append(line)
        if len(read) >= _LOOKED_AT:
            break
    best = max(_SEPARATORS, key=lambda separator: _parting(read[first:], separator, given))
    return 0, best, chain(read, lines)


def _parting(lines: Sequence[str], separator: str, given: Columns | None) -> tuple[int, bool, bool]:
    """How well a separator parts the first lines."""
    try:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:  # said when the row is read in earnest
        rows = []
    first = rows[0] if rows else []
    steady = len(first) > 1 and len({len(row) for row in rows[:-1]}) == 1  # the last may be cut
    return known_names(first, given), len(first) in (2, 3), steady
