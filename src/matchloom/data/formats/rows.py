"""The rows of each file format, one in memory at a time, with their values under our names."""

from __future__ import annotations

import csv
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pyarrow
import pyarrow.parquet

from matchloom.basics.files import max_line, open_bytes, read_lines
from matchloom.data.formats.columns import Columns, find_columns, known_names
from matchloom.data.formats.json_list import is_lines, json_objects
from matchloom.data.formats.row import OwnColumns, Row
from matchloom.data.formats.values import number_of, short
from matchloom.types import MatchloomError

_log = logging.getLogger("matchloom")
_SEPARATORS = (",", ";", "|", "\t")
_BATCH = 1_000  # rows of a table that are Python objects at a time


class _Table:
    """The columns of a text file, known from its first line."""

    def __init__(self, path: Path, given: Columns | None) -> None:
        self._path = path
        self._given = given
        self._columns: dict[str, int] = {}
        self._expected = 0
        self._names: Sequence[str] = ()
        self._told_by = "header"

    def row(self, place: str, cells: list[str], remedy: str) -> Row | None:
        """The row of these cells; None if they are the header."""
        if not self._columns and self._first(cells):
            return None
        if len(cells) != self._expected:
            raise MatchloomError(
                f"{self._path}, {place}: found {len(cells)} fields, expected {self._expected} as in the "
                f"{self._told_by}; {remedy}",
                code="bad_row",
            )
        values = {name: cells[i] for name, i in self._columns.items()}
        return Row(place, values, OwnColumns(self._names, cells), self._columns.values())

    def _first(self, cells: list[str]) -> bool:
        """Learn the columns; whether these cells are a header. If they are data, the log has what was assumed."""
        self._expected = len(cells)
        data = len(cells) == 2 or (len(cells) == 3 and not math.isnan(number_of(cells[2]) or 0.0))
        named = any((self._given or {}).values())  # who names columns has a header
        if named or not data or known_names(cells):
            self._columns = find_columns(str(self._path), cells, self._given)
            self._names = cells
            return True
        self._names = names = ("query", "text", "label")[: len(cells)]
        self._columns = {name: i for i, name in enumerate(names) if name not in (self._given or {})}
        self._told_by = "first line"
        _log.warning(
            "%s: the first line names no column that is known; it is taken as a pair, the columns as %s",
            self._path,
            ", ".join(names),
        )
        return False


def _tsv_rows(path: Path, given: Columns | None) -> Iterator[Row]:
    table = _Table(path, given)
    for number, line in read_lines(path):
        remedy = "TSV knows no quotes: a tab inside a text must go" if line.endswith("\n") else "is the file cut off?"
        line = line.removesuffix("\n").removesuffix("\r")
        if line and (row := table.row(f"line {number}", line.split("\t"), remedy)):
            yield row


def _csv_rows(path: Path, given: Columns | None) -> Iterator[Row]:
    table = _Table(path, given)
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
        if cells and (row := table.row(place, cells, remedy)):  # an empty line has no cells
            yield row


def _separator(lines: Iterator[str], given: Columns | None) -> tuple[int, str, Iterator[str]]:
    """How many lines to pass over, what parts the cells, and the lines to read.

    A spreadsheet may say it in a line of its own, `sep=;`. Else it is what parts the first line into the most known
    names, or if there are none, into a pair.
    """
    read: list[str] = []
    for line in lines:
        read.append(line)
        words = line.strip("\r\n").strip('"')
        if len(words) == 5 and words.lower().startswith("sep="):
            return len(read), words[4], lines
        if line.strip():
            break
    first = read[-1] if read else ""
    cells = {separator: _cells(first, separator) for separator in _SEPARATORS}
    best = max(
        _SEPARATORS, key=lambda separator: (known_names(cells[separator], given), len(cells[separator]) in (2, 3))
    )
    return 0, best, chain(read, lines)


def _cells(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # said when the row is read in earnest
        return []


def _jsonl_rows(path: Path, given: Columns | None) -> Iterator[Row]:
    named = NamedRows(str(path), given)
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line)
        except (ValueError, RecursionError) as error:
            remedy = "" if line.endswith("\n") else "; is the file cut off?"
            raise MatchloomError(f"{path}, line {number}: this is no JSON ({error}){remedy}", code="bad_row") from None
        if not isinstance(row, dict):
            raise MatchloomError(
                f"{path}, line {number}: expected a JSON object, found {line.strip()[:40]!r}", code="bad_row"
            )
        yield named.row(f"line {number}", row)


def _json_rows(path: Path, given: Columns | None) -> Iterator[Row]:
    if is_lines(path):
        yield from _jsonl_rows(path, given)
        return
    named = NamedRows(str(path), given)
    for number, row in json_objects(path):
        if not isinstance(row, dict):
            raise MatchloomError(f"{path}, object {number}: expected a JSON object, found {short(row)}", code="bad_row")
        yield named.row(f"object {number}", row)


class NamedRows:
    """Rows that name their own columns, each as it likes."""

    def __init__(self, source: str, given: Columns | None) -> None:
        self._source = source
        self._given = given
        self._known: dict[tuple[str, ...], dict[str, int]] = {}

    def row(self, place: str, row: Mapping[str, Any]) -> Row:
        """The values of the row under our names."""
        keys = tuple(row)
        if keys not in self._known:
            if len(self._known) > 1000:  # every row has its own keys: do not remember them all
                self._known.clear()
            self._known[keys] = find_columns(f"{self._source}, {place}", keys, self._given, header=False)
        columns = self._known[keys]
        values = {name: row[keys[i]] for name, i in columns.items()}
        return Row(place, values, OwnColumns(keys, row.values()), columns.values())


def _parquet_rows(path: Path, given: Columns | None, *, whole: bool = False) -> Iterator[Row]:
    """The rows of a Parquet file. Columns that we do not know are read, as the user's own, only if `whole`."""
    with open_bytes(path) as stream:
        try:
            file = pyarrow.parquet.ParquetFile(stream)
            names = file.schema_arrow.names
            known = find_columns(str(path), names, given, header=False).values()
            wanted = list(range(len(names))) if whole else sorted(known)
            batches = file.iter_batches(batch_size=_BATCH, columns=[names[i] for i in wanted])
            yield from table_rows(str(path), [names[i] for i in wanted], batches, given)
        except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise MatchloomError(
                f"{path} cannot be read as Parquet: {reason}; is it cut off, or another format?", code="damaged"
            ) from None


def table_rows(source: str, names: Sequence[str], batches: Iterable[Any], given: Columns | None) -> Iterator[Row]:
    """The rows of Arrow's record batches, whose columns have these names."""
    columns = find_columns(source, names, given, header=False)
    number = 0
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH):
            some = batch.slice(start, _BATCH)
            found = [some.column(i).to_pylist() for i in range(len(names))]
            for values in zip(*found, strict=True):
                number += 1
                row = {name: values[i] for name, i in columns.items()}
                yield Row(f"row {number}", row, OwnColumns(names, values), columns.values())


READERS: dict[str, Callable[..., Iterator[Row]]] = {
    "tsv": _tsv_rows,
    "csv": _csv_rows,
    "jsonl": _jsonl_rows,
    "json": _json_rows,
    "parquet": _parquet_rows,
}
