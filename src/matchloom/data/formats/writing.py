"""Pairs into files of each format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from matchloom.basics.extras import need
from matchloom.basics.files import atomic_write, write_lines
from matchloom.data.formats.columns import COLUMNS
from matchloom.data.formats.sheet_guard import guarded
from matchloom.types import MatchloomError, Pair

_ROWS = 10_000  # of a Parquet row group


def write_rows(path: Path, pairs: Iterable[Pair], kind: str) -> None:
    """Write pairs in the format of this name, whole or not at all."""
    if kind == "parquet":
        _write_parquet(path, _writable(path, pairs))
    else:
        write_lines(path, _without_nul(path, _LINES[kind](path, _writable(path, pairs))))


def _writable(path: Path, pairs: Iterable[Pair]) -> Iterator[Pair]:
    for number, pair in enumerate(pairs, start=1):
        if not pair.query.strip() and not pair.text.strip():
            raise MatchloomError(
                f"{path} was not written: query and text of pair {number} are both empty", code="bad_row"
            )
        if pair.label is not None and not math.isfinite(pair.label):
            raise MatchloomError(f"{path} was not written: the label of pair {number} is {pair.label}", code="bad_row")
        if pair.label is not None and pair.label < 0:
            raise MatchloomError(
                f"{path} was not written: the label of pair {number} is {pair.label}; labels start at 0", code="bad_row"
            )
        yield pair if pair.label is None else pair._replace(label=float(pair.label))


def _cells(pair: Pair) -> tuple[str, ...]:
    label = pair.label
    number = "" if label is None else repr(label).removesuffix(".0")
    return (pair.query_id, pair.text_id, pair.group, pair.query, pair.text, number)


def _tsv_lines(path: Path, pairs: Iterable[Pair]) -> Iterator[bytes]:
    yield ("\t".join(COLUMNS) + "\n").encode()
    spaces = str.maketrans("\t\n\r", "   ")
    for number, pair in enumerate(pairs, start=1):
        cells = [guarded(cell).translate(spaces) for cell in _cells(pair)]
        if cells[:3] != [guarded(name) for name in (pair.query_id, pair.text_id, pair.group)]:
            raise MatchloomError(
                f"{path} was not written: an id or group of pair {number} holds a tab or line break; use CSV or JSONL",
                code="bad_row",
            )
        yield ("\t".join(cells) + "\n").encode()


def _csv_lines(path: Path, pairs: Iterable[Pair]) -> Iterator[bytes]:
    yield (",".join(COLUMNS) + "\n").encode()
    for pair in pairs:
        yield (",".join('"' + guarded(cell).replace('"', '""') + '"' for cell in _cells(pair)) + "\n").encode()


def _jsonl_lines(path: Path, pairs: Iterable[Pair]) -> Iterator[bytes]:
    encoder = msgspec.json.Encoder()
    for pair in pairs:
        yield encoder.encode({name: getattr(pair, name) for name in COLUMNS}) + b"\n"


def _json_lines(path: Path, pairs: Iterable[Pair]) -> Iterator[bytes]:
    start = b"[\n"
    for line in _jsonl_lines(path, pairs):
        yield start + line.removesuffix(b"\n")
        start = b",\n"
    yield b"\n]\n" if start == b",\n" else b"[]\n"


def _without_nul(path: Path, lines: Iterable[bytes]) -> Iterator[bytes]:
    for number, line in enumerate(lines):  # the header is line 0, pairs count from 1
        if b"\0" in line:  # refused by the reader, as it mostly means a wrong encoding; JSONL escapes it
            raise MatchloomError(
                f"{path} was not written: pair {number} holds a NUL character; use JSONL or Parquet", code="bad_row"
            )
        yield line


def _write_parquet(path: Path, pairs: Iterable[Pair]) -> None:
    parquet, pyarrow = need("pyarrow.parquet", str(path)), need("pyarrow")
    types = {name: pyarrow.float64() if name == "label" else pyarrow.string() for name in COLUMNS}
    schema = pyarrow.schema(list(types.items()))
    pairs = iter(pairs)
    with atomic_write(path, "wb") as file, parquet.ParquetWriter(file, schema) as writer:
        while rows := list(islice(pairs, _ROWS)):
            columns = {name: [getattr(pair, name) for pair in rows] for name in COLUMNS}
            writer.write_table(pyarrow.table(columns, schema=schema))


_LINES: dict[str, Callable[[Path, Iterable[Pair]], Iterator[bytes]]] = {
    "tsv": _tsv_lines,
    "csv": _csv_lines,
    "jsonl": _jsonl_lines,
    "json": _json_lines,
}
WRITTEN = (*_LINES, "parquet")  # the formats that pairs are written in
