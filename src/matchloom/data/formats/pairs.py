"""Pairs from TSV, CSV, JSONL and Parquet files and back, one row in memory at a time."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow
import pyarrow.parquet

from matchloom.data.ids import with_ids
from matchloom.files import atomic_write, open_bytes, read_lines, write_lines
from matchloom.types import MatchloomError, Pair

FORMATS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}

# Names under which a column is found, in upper or lower case; the first is the one that is written.
# The label comes last in a written row, so that a file cut off in its last line is noticed.
COLUMNS = {
    "query_id": ("query_id", "qid", "question_id"),
    "text_id": ("text_id", "docid", "doc_id", "answer_id"),
    "group": ("group",),
    "query": ("query", "question"),
    "text": ("text", "answer", "document", "sentence"),
    "label": ("label", "relevance"),
}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_LONGEST = 1 << 26  # characters of a CSV field; beyond it a quote was left open
_ROWS = 10_000  # of a Parquet row group

# A row as a file holds it: where it stands ("line 3") and its values by our names.
Row = tuple[str, dict[str, Any]]


def read_pairs(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002
    require_label: bool = False,
    fill_ids: bool = True,
) -> Iterator[Pair]:
    """Yield the pairs of a TSV, CSV, JSONL or Parquet file as a stream.

    The format follows from the name (`.tsv`, `.csv`, `.jsonl`, `.ndjson`, `.parquet`, `.pq`; the text formats also
    with `.gz`) unless `format` is given. Columns are found by name, their order is free and others are ignored:
    `query` (or question), `text` (answer, document, sentence), and where there are any `label` (relevance), `query_id`
    (qid, question_id), `text_id` (docid, doc_id, answer_id) and `group`. A label is a number or one of yes, no, true,
    false. Ids that are missing or empty are made from content, or stay empty without `fill_ids`. TSV and CSV need a
    header line; TSV knows no quotes.

    One empty side is kept; a row with both sides empty, or a second row with the same two ids, is an error.

    Args:
        path: The file.
        format: tsv, csv, jsonl or parquet, where the name does not say it.
        require_label: Refuse a file in which a pair has no label.
        fill_ids: Make ids that are missing from content, so that equal queries are one list.
    """
    path = Path(path)
    rows = _READERS[_format(path, format)](path)
    pairs = _checked(path, rows, require_label)
    return with_ids(pairs) if fill_ids else pairs


def write_pairs(path: Path | str, pairs: Iterable[Pair], *, format: str | None = None) -> None:  # noqa: A002
    """Write pairs to a TSV, CSV, JSONL or Parquet file, whole or not at all; the format follows from the name.

    TSV has no way to quote, so a tab or line break inside a query or text is written as a space, which separates
    words just as well; inside an id or a group it is an error. The other formats keep every character.
    """
    path = Path(path)
    kind = _format(path, format)
    if kind == "parquet":
        _write_parquet(path, _writable(path, pairs))
    else:
        write_lines(path, _without_nul(path, _LINES[kind](path, _writable(path, pairs))))


def _format(path: Path, given: str | None) -> str:
    if given is None:
        name = path.name.lower()
        given = FORMATS.get(Path(name.removesuffix(".gz")).suffix)
        if given is None:
            raise MatchloomError(f"{path}: no format is known by this name; use one of {', '.join(FORMATS)}")
        if given == "parquet" and name.endswith(".gz"):
            raise MatchloomError(f"{path}: Parquet is compressed inside; leave out .gz")
    elif given not in _READERS:
        raise MatchloomError(f"format {given!r} is unknown; use one of {', '.join(_READERS)}")
    return given


# ---- rows of each format


def _tsv_rows(path: Path) -> Iterator[Row]:
    columns: dict[str, int] = {}
    expected = 0
    for number, line in read_lines(path):
        whole = line.endswith("\n")
        line = line.removesuffix("\n").removesuffix("\r")
        if not line:
            continue
        cells = line.split("\t")
        if not columns:
            columns, expected = _columns(path, cells), len(cells)
            continue
        if len(cells) != expected:
            remedy = "TSV knows no quotes: a tab inside a text must go" if whole else "is the file cut off?"
            raise MatchloomError(
                f"{path}, line {number}: found {len(cells)} fields, expected {expected} as in the header; {remedy}"
            )
        yield f"line {number}", {name: cells[i] for name, i in columns.items()}


def _csv_rows(path: Path) -> Iterator[Row]:
    reader = csv.reader((line for _, line in read_lines(path)), strict=True)
    columns: dict[str, int] = {}
    expected = 0
    while True:
        place = f"line {reader.line_num + 1}"
        # The limit belongs to the whole process, and its usual value is less than a long text: lift it for one row.
        limit = csv.field_size_limit(_LONGEST)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise MatchloomError(
                f"{path}, {place}: this row is no CSV ({error}); is a quote left open, or the file cut off?"
            ) from None
        finally:
            csv.field_size_limit(limit)
        if cells is None:
            return
        if not cells:  # an empty line
            continue
        if not columns:
            columns, expected = _columns(path, cells), len(cells)
            continue
        if len(cells) != expected:
            raise MatchloomError(
                f"{path}, {place}: found {len(cells)} fields, expected {expected} as in the header; "
                "texts with commas need quotes, or is the file cut off?"
            )
        yield place, {name: cells[i] for name, i in columns.items()}


def _jsonl_rows(path: Path) -> Iterator[Row]:
    known: dict[tuple[str, ...], dict[str, int]] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line)
        except (ValueError, RecursionError) as error:
            remedy = "" if line.endswith("\n") else "; is the file cut off?"
            raise MatchloomError(f"{path}, line {number}: this is no JSON ({error}){remedy}") from None
        if not isinstance(row, dict):
            raise MatchloomError(f"{path}, line {number}: expected a JSON object, found {line.strip()[:40]!r}")
        keys = tuple(row)
        if keys not in known:
            if len(known) > 1000:  # every row has its own keys: do not remember them all
                known.clear()
            known[keys] = _columns(path, list(keys), f", line {number}")
        yield f"line {number}", {name: row[keys[i]] for name, i in known[keys].items()}


def _parquet_rows(path: Path) -> Iterator[Row]:
    with open_bytes(path) as stream:
        try:
            file = pyarrow.parquet.ParquetFile(stream)
            names = file.schema_arrow.names
            columns = _columns(path, names)
            number = 0
            for batch in file.iter_batches(batch_size=1_000, columns=[names[i] for i in columns.values()]):
                found = {name: batch.column(names[i]).to_pylist() for name, i in columns.items()}
                for values in zip(*found.values(), strict=True):
                    number += 1
                    yield f"row {number}", dict(zip(found, values, strict=True))
        except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise MatchloomError(
                f"{path} cannot be read as Parquet: {reason}; is it cut off, or another format?"
            ) from None


def _columns(path: Path, found: list[str], place: str = "") -> dict[str, int]:
    """Where each of our columns stands. Our own name goes before others; two others for one column are an error."""
    lower = [name.strip().lower() for name in found]
    columns: dict[str, int] = {}
    for name, aliases in COLUMNS.items():
        hits = [i for i, column in enumerate(lower) if column == name]
        hits = hits or [i for i, column in enumerate(lower) if column in aliases]
        if len(hits) > 1:
            both = " and ".join(repr(found[i]) for i in hits)
            raise MatchloomError(f"{path}{place}: {both} could each be the column {name!r}; rename one")
        if hits:
            columns[name] = hits[0]
    missing = [name for name in ("query", "text") if name not in columns]
    if missing:
        listed = ", ".join(name[:30] for name in found[:12])
        wanted = " and ".join(f"{name!r} (or {', '.join(COLUMNS[name][1:])})" for name in missing)
        header = "" if place else " in the first line"
        raise MatchloomError(f"{path}{place}: found the columns {listed}; expected {wanted}{header}")
    return columns


_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "tsv": _tsv_rows,
    "csv": _csv_rows,
    "jsonl": _jsonl_rows,
    "parquet": _parquet_rows,
}


# ---- rows into pairs


def _checked(path: Path, rows: Iterable[Row], require_label: bool) -> Iterator[Pair]:
    seen: set[tuple[str, str]] = set()
    empty = True
    for place, row in rows:
        empty = False
        where = f"{path}, {place}"
        pair = Pair(
            _text(where, "query", row["query"]),
            _text(where, "text", row["text"]),
            _label(where, row.get("label")),
            _id(where, "query_id", row.get("query_id")),
            _id(where, "text_id", row.get("text_id")),
            _id(where, "group", row.get("group")),
        )
        if require_label and pair.label is None:
            raise MatchloomError(f"{where}: there is no label; expected a number, yes or no in the column 'label'")
        if not pair.query.strip() and not pair.text.strip():
            raise MatchloomError(f"{where}: query and text are both empty; remove the row")
        if pair.query_id and pair.text_id:
            ids = (pair.query_id, pair.text_id)
            if ids in seen:
                raise MatchloomError(
                    f"{where}: query_id {ids[0]!r} with text_id {ids[1]!r} was already given above; "
                    "ids must differ, or leave the column text_id out"
                )
            seen.add(ids)
        yield pair
    if empty:
        raise MatchloomError(f"{path} holds no pairs; expected rows with the columns query and text")


def _text(where: str, name: str, value: object) -> str:
    if not isinstance(value, str):
        raise MatchloomError(f"{where}: {name} is {_short(value)}; expected a text")
    return value


def _label(where: str, value: object) -> float | None:
    word = value.strip().lower() if isinstance(value, str) else value
    if word is None or word == "":
        return None
    if isinstance(word, str) and word in _WORDS:
        return _WORDS[word]
    try:
        number = float(word) if isinstance(word, str | int | float) and "_" not in str(word) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise MatchloomError(f"{where}: label is {_short(value)}; expected a number, yes, no, true or false")
    return number


def _id(where: str, name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise MatchloomError(f"{where}: {name} is {_short(value)}; expected a text or a whole number")
    return str(value)


def _short(value: object) -> str:
    return "missing" if value is None else repr(value)[:60]


# ---- pairs into rows


def _writable(path: Path, pairs: Iterable[Pair]) -> Iterator[Pair]:
    for number, pair in enumerate(pairs, start=1):
        if not pair.query.strip() and not pair.text.strip():
            raise MatchloomError(f"{path} was not written: query and text of pair {number} are both empty")
        if pair.label is not None and not math.isfinite(pair.label):
            raise MatchloomError(f"{path} was not written: the label of pair {number} is {pair.label}")
        yield pair if pair.label is None else pair._replace(label=float(pair.label))


def _cells(pair: Pair) -> tuple[str, ...]:
    label = pair.label
    number = "" if label is None else repr(label).removesuffix(".0")
    return (pair.query_id, pair.text_id, pair.group, pair.query, pair.text, number)


def _tsv_lines(path: Path, pairs: Iterable[Pair]) -> Iterator[bytes]:
    yield ("\t".join(COLUMNS) + "\n").encode()
    spaces = str.maketrans("\t\n\r", "   ")
    for number, pair in enumerate(pairs, start=1):
        cells = [cell.translate(spaces) for cell in _cells(pair)]
        if cells[:3] != [pair.query_id, pair.text_id, pair.group]:
            raise MatchloomError(
                f"{path} was not written: an id or group of pair {number} holds a tab or line break; use CSV or JSONL"
            )
        yield ("\t".join(cells) + "\n").encode()


def _csv_lines(path: Path, pairs: Iterable[Pair]) -> Iterator[bytes]:
    yield (",".join(COLUMNS) + "\n").encode()
    for pair in pairs:
        yield (",".join('"' + cell.replace('"', '""') + '"' for cell in _cells(pair)) + "\n").encode()


def _jsonl_lines(path: Path, pairs: Iterable[Pair]) -> Iterator[bytes]:
    encoder = msgspec.json.Encoder()
    for pair in pairs:
        yield encoder.encode({name: getattr(pair, name) for name in COLUMNS}) + b"\n"


def _without_nul(path: Path, lines: Iterable[bytes]) -> Iterator[bytes]:
    for number, line in enumerate(lines):  # the header is line 0, pairs count from 1
        if b"\0" in line:  # refused by the reader, as it mostly means a wrong encoding; JSONL escapes it
            raise MatchloomError(f"{path} was not written: pair {number} holds a NUL character; use JSONL or Parquet")
        yield line


def _write_parquet(path: Path, pairs: Iterable[Pair]) -> None:
    types = {name: pyarrow.float64() if name == "label" else pyarrow.string() for name in COLUMNS}
    schema = pyarrow.schema(list(types.items()))
    pairs = iter(pairs)
    with atomic_write(path, "wb") as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        while rows := list(islice(pairs, _ROWS)):
            columns = {name: [getattr(pair, name) for pair in rows] for name in COLUMNS}
            writer.write_table(pyarrow.table(columns, schema=schema))


_LINES: dict[str, Callable[[Path, Iterable[Pair]], Iterator[bytes]]] = {
    "tsv": _tsv_lines,
    "csv": _csv_lines,
    "jsonl": _jsonl_lines,
}
