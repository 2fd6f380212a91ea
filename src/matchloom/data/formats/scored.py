"""The rows of a user's file with what was said of them: its own columns, in their order, and one or two more."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from matchloom.basics.extras import need
from matchloom.basics.files import atomic_write, write_lines
from matchloom.data.formats.row import OwnColumns
from matchloom.data.formats.sheet_guard import guarded
from matchloom.types import MatchloomError

_GROUP = 10_000  # rows of a Parquet row group
_ONE_LINE = str.maketrans("\t\n\r", "   ")  # TSV has no way to quote


class ScoredRow(NamedTuple):
    """A row, and the digits of its score and of its probability, where there is one."""

    own: OwnColumns
    added: Sequence[str]


def added_names(own: Sequence[str], wanted: Sequence[str], scorer: str) -> list[str]:
    """Names for the columns that come behind the user's own: with the scorer's name where they are taken.

    >>> added_names(["query", "text", "score"], ["score", "probability"], "bm25")
    ['score_bm25', 'probability']
    """
    names: list[str] = []
    for name in wanted:
        free = name if name not in own else f"{name}_{scorer}"
        number = 2
        while free in own:
            free, number = f"{name}_{scorer}_{number}", number + 1
        names.append(free)
    return names


def scored_lines(kind: str, rows: Iterable[ScoredRow], wanted: Sequence[str], scorer: str) -> Iterator[bytes]:
    """The lines of a TSV, CSV, JSONL or JSON file."""
    return _LINES[kind](rows, wanted, scorer)


def write_scored(path: Path, kind: str, rows: Iterable[ScoredRow], wanted: Sequence[str], scorer: str) -> None:
    """Write a file of this format, whole or not at all."""
    if kind == "parquet":
        _write_parquet(path, rows, wanted, scorer)
    else:
        write_lines(path, scored_lines(kind, rows, wanted, scorer))


def _tsv(rows: Iterable[ScoredRow], wanted: Sequence[str], scorer: str) -> Iterator[bytes]:
    for cells in _cells(rows, wanted, scorer):
        yield ("\t".join(guarded(cell).translate(_ONE_LINE) for cell in cells) + "\n").encode("utf-8", "replace")


def _csv(rows: Iterable[ScoredRow], wanted: Sequence[str], scorer: str) -> Iterator[bytes]:
    for cells in _cells(rows, wanted, scorer):
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow([guarded(cell) for cell in cells])
        yield line.getvalue().encode("utf-8", "replace")


def _jsonl(rows: Iterable[ScoredRow], wanted: Sequence[str], scorer: str) -> Iterator[bytes]:
    for row in rows:
        own = {name: _json_value(value) for name, value in zip(row.own.names, row.own.values, strict=True)}
        added = dict(zip(added_names(row.own.names, wanted, scorer), map(float, row.added), strict=True))
        line = json.dumps({**own, **added}, ensure_ascii=False, default=str)
        yield (line + "\n").encode("utf-8", "backslashreplace")  # which is how JSON writes half a character, too


def _json(rows: Iterable[ScoredRow], wanted: Sequence[str], scorer: str) -> Iterator[bytes]:
    start = b"[\n"
    for line in _jsonl(rows, wanted, scorer):
        yield start + line.removesuffix(b"\n")
        start = b",\n"
    yield b"\n]\n"


def _cells(rows: Iterable[ScoredRow], wanted: Sequence[str], scorer: str) -> Iterator[list[str]]:
    """The header and the cells of each row; the first row says which columns there are."""
    names: list[str] = []
    for number, row in enumerate(rows, start=1):
        if not names:
            names = list(row.own.names)
            yield [*names, *added_names(names, wanted, scorer)]
        yield [*map(_text, _as_first(row.own, names, number)), *row.added]


def _as_first(own: OwnColumns, names: list[str], number: int) -> Iterable[Any]:
    """The values under the names of the first row; JSON's rows may each have their own."""
    if list(own.names) == names:
        return own.values
    more = [name for name in own.names if name not in names]
    if more:
        raise MatchloomError(
            f"row {number} has the column {more[0]!r}, which the first has not; write .jsonl", code="bad_columns"
        )
    found = dict(zip(own.names, own.values, strict=True))
    return [found.get(name) for name in names]


def _json_value(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)


def _write_parquet(path: Path, rows: Iterable[ScoredRow], wanted: Sequence[str], scorer: str) -> None:
    """Numbers and truth values stay what they are, if they are so in the first rows; all else is text."""
    parquet, pyarrow = need("pyarrow.parquet", str(path)), need("pyarrow")
    rows = iter(rows)
    some = list(islice(rows, _GROUP))
    names = list(some[0].own.names) if some else []
    columns = list(zip(*(_as_first(row.own, names, n) for n, row in enumerate(some, start=1)), strict=True))
    kinds = [_kind(column) for column in columns]
    added = added_names(names, wanted, scorer)
    types = [*kinds, *(pyarrow.float32() for _ in added)]
    schema = pyarrow.schema(list(zip([*names, *added], types, strict=True)))
    number = 0
    with atomic_write(path, "wb") as file, parquet.ParquetWriter(file, schema) as writer:
        while some:
            values = [
                [*_as_first(row.own, names, number + n), *map(float, row.added)] for n, row in enumerate(some, start=1)
            ]
            arrays = [_array(column, kind) for column, kind in zip(zip(*values, strict=True), types, strict=True)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
            number += len(some)
            some = list(islice(rows, _GROUP))


def _kind(column: Iterable[Any]) -> Any:
    import pyarrow

    found = {type(value) for value in column if value is not None}
    if found == {bool}:
        return pyarrow.bool_()
    if found == {int}:
        return pyarrow.int64()
    return pyarrow.float64() if found and found <= {int, float} else pyarrow.string()


def _array(column: Sequence[Any], kind: Any) -> Any:
    import pyarrow

    if kind == pyarrow.string():
        return pyarrow.array([None if value is None else _text(value) for value in column], kind)
    try:
        return pyarrow.array(column, kind)
    except (pyarrow.ArrowException, OverflowError):
        raise MatchloomError(
            f"a column of {kind} has other values further down; write .jsonl", code="bad_columns"
        ) from None


_LINES: dict[str, Callable[[Iterable[ScoredRow], Sequence[str], str], Iterator[bytes]]] = {
    "tsv": _tsv,
    "csv": _csv,
    "jsonl": _jsonl,
    "json": _json,
}
