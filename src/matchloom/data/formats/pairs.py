"""Pairs from TSV, CSV, JSONL, JSON and Parquet files and back, one row in memory at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from matchloom.basics.validation import one_path
from matchloom.data.formats.columns import COLUMNS, Columns, check_given
from matchloom.data.formats.row import OwnColumns, Row
from matchloom.data.formats.rows import READERS
from matchloom.data.formats.values import pair_of
from matchloom.data.formats.writing import write_rows
from matchloom.data.identity import with_ids
from matchloom.types import MatchloomError, Pair

__all__ = ["COLUMNS", "FORMATS", "read_own_columns", "read_pairs", "write_pairs"]

FORMATS = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "tsv",
}


def read_pairs(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002
    columns: Columns | None = None,
    require_label: bool = False,
    graded: bool = False,
    fill_ids: bool = True,
) -> Iterator[Pair]:
    """Yield the pairs of a TSV, CSV, JSONL, JSON or Parquet file as a stream.

    The format follows from the name (`.tsv` or `.txt`, `.csv`, `.jsonl` or `.ndjson`, `.json`, `.parquet` or `.pq`; the
    text formats also with `.gz`) unless `format` is given. CSV may be separated by commas, semicolons, bars or tabs, as
    its first line shows; TSV knows no quotes; JSON is a list of objects, or {"data": [...]}.

    Columns are found by name, their order is free and others are ignored: `query` (or question, question1, sentence1,
    premise, prompt, ...), `text` (answer, document, passage, sentence, question2, sentence2, hypothesis, response and
    so on), and where there are any `label` (relevance, is_duplicate), `query_id` (qid, ...), `text_id` (docid, pid,
    ...) and `group`; data.formats.columns has all of them. `columns` says which of the file's columns is which of ours,
    such as {"query": "title", "text": "reply"}, and leaves one out that has an empty name. A TSV or CSV file of two or
    three columns whose first line names none that is known has no header: it is read as query, text and label, and the
    log says so.

    A label is a whole number from 0 or one of yes, no, true, false; with `graded` any number from 0. Ids that are
    missing or empty are made from content, or stay empty without `fill_ids`. One empty side is kept; a row with both
    sides empty, or a second row with the same two ids, is an error.

    Args:
        path: The file.
        format: tsv, csv, jsonl, json or parquet, where the name does not say it.
        columns: Which of the file's columns is which of ours, such as {"query": "title"}.
        require_label: Refuse a file in which a pair has no label.
        graded: Take any number from 0 as a label, such as .8.
        fill_ids: Make ids that are missing from content, so that equal queries are one list.
    """
    rows = read_rows(path, format=format, columns=columns, require_label=require_label, graded=graded)
    pairs = (pair for pair, _ in rows)
    return with_ids(pairs) if fill_ids else pairs


def read_rows(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002
    columns: Columns | None = None,
    require_label: bool = False,
    graded: bool = False,
    whole: bool = False,
) -> Iterator[tuple[Pair, Row]]:
    """Yield the pairs of a file, each with the row that it was made of; ids as the file has them.

    Args:
        path: The file.
        format: As for `read_pairs`, as are `columns`, `require_label` and `graded`.
        columns: Which of the file's columns is which of ours.
        require_label: Refuse a pair without a label.
        graded: Take any number from 0 as a label.
        whole: Read the user's own columns, too, where a format could leave them out.
    """
    path = one_path("path", path)
    check_given(columns)
    kind = _format(path, format)
    rows = READERS[kind](path, columns, **({"whole": whole} if kind == "parquet" else {}))
    return _checked(path, rows, require_label, graded)


def read_own_columns(path: Path | str, *, columns: Columns | None = None) -> Iterator[tuple[Pair, OwnColumns]]:
    """Yield the pairs of a file, and beside each all that its row holds, as the user has it; ids as `read_pairs`.

    Args:
        path: The file.
        columns: As for `read_pairs`.
    """
    rows = read_rows(path, columns=columns, whole=True)
    waiting: deque[OwnColumns] = deque()

    def pairs() -> Iterator[Pair]:
        for pair, row in rows:
            waiting.append(row.own)
            yield pair

    for pair in with_ids(pairs()):
        yield pair, waiting.popleft()


def write_pairs(path: Path | str, pairs: Iterable[Pair], *, format: str | None = None) -> None:  # noqa: A002
    """Write pairs to a TSV, CSV, JSONL, JSON or Parquet file, whole or not at all; the format follows from the name.

    TSV has no way to quote, so a tab or line break inside a query or text is written as a space, which separates
    words just as well; inside an id or a group it is an error. The other formats keep every character.
    """
    path = Path(path)
    write_rows(path, pairs, _format(path, format))


def _format(path: Path, given: str | None) -> str:
    if given is None:
        name = path.name.lower()
        given = FORMATS.get(Path(name.removesuffix(".gz")).suffix)
        if given is None:
            raise MatchloomError(
                f"{path}: no format is known by this name; use one of {', '.join(FORMATS)}", code="wrong_format"
            )
        if given == "parquet" and name.endswith(".gz"):
            raise MatchloomError(f"{path}: Parquet is compressed inside; leave out .gz", code="wrong_format")
    elif given not in READERS:
        raise MatchloomError(f"format {given!r} is unknown; use one of {', '.join(READERS)}", code="unknown_name")
    return given


def _checked(path: Path, rows: Iterable[Row], require_label: bool, graded: bool) -> Iterator[tuple[Pair, Row]]:
    seen: set[tuple[str, str]] = set()
    empty = True
    for row in rows:
        empty = False
        where = f"{path}, {row.place}"
        pair = pair_of(where, row.values, graded=graded)
        if require_label and pair.label is None:
            raise MatchloomError(
                f"{where}: there is no label; expected a number, yes or no in the column 'label' (or "
                f"{', '.join(COLUMNS['label'][1:])}; if it has another name: --columns label=NAME)",
                code="bad_row",
            )
        if pair.query_id and pair.text_id:
            ids = (pair.query_id, pair.text_id)
            if ids in seen:
                raise MatchloomError(
                    f"{where}: query_id {ids[0]!r} with text_id {ids[1]!r} was already given above; "
                    "ids must differ, or leave the column out: --columns text_id=",
                    code="bad_row",
                )
            seen.add(ids)
        yield pair, row
    if empty:
        raise MatchloomError(f"{path} holds no pairs; expected rows with the columns query and text", code="no_data")
