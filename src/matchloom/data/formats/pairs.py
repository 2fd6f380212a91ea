"""Pairs from files of every format and back, one row in memory at a time where the format allows it."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from matchloom.basics.validation import one_path
from matchloom.data.formats.columns import COLUMNS, Columns, check_given
from matchloom.data.formats.readers import FORMATS, READERS
from matchloom.data.formats.row import Found, LeftOut, Note, OwnColumns, Row
from matchloom.data.formats.shards import Shards, find_shards
from matchloom.data.formats.values import pair_of
from matchloom.data.formats.writing import WRITTEN, write_rows
from matchloom.data.identity import with_ids
from matchloom.types import MatchloomError, Pair

__all__ = ["COLUMNS", "FORMATS", "WRITTEN", "format_of", "read_own_columns", "read_pairs", "read_rows", "write_pairs"]

_log = logging.getLogger("matchloom")


def read_pairs(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002
    columns: Columns | None = None,
    require_label: bool = False,
    graded: bool = False,
    fill_ids: bool = True,
) -> Iterator[Pair]:
    """Yield the pairs of a file or folder as a stream.

    The format follows from the name unless `format` is given: `.tsv` or `.txt`, `.csv`, `.jsonl` or `.ndjson`, `.json`,
    `.md` and `.html` (each also with `.gz`), `.parquet` or `.pq` (which need the extra `parquet`), `.xlsx` and `.ods`,
    `.zip`, or a folder of such files. A folder in which all files are Parquet is read shard by shard: ids must differ
    within a shard, and one that is cut off, has other columns or changes meanwhile is refused. Text is UTF-8, or UTF-16
    with its mark. CSV may be separated by commas, semicolons, bars or tabs, as its first lines show; TSV knows no
    quotes; JSON is a list of objects, {"data": [...]}, an export of Zendesk, Freshdesk or Intercom, or nested objects;
    an object may hold several questions or the messages
    of a chat. Of Markdown and HTML headings are questions, and what follows is the answer.

    Columns are found by name, their order is free and others are ignored: `query` (or question, question1, sentence1,
    premise, prompt, ...), `text` (answer, document, passage, sentence, question2, sentence2, hypothesis, response and
    so on), each also in some twenty other languages (such as Frage and Antwort), and where there are any `label`
    (relevance, is_duplicate), `query_id` (qid, ...), `text_id` (docid, pid, ...) and `group`; data.formats.columns has
    all of them. `columns` says which of the file's columns is which of ours, such as {"query": "title", "text":
    "reply"}, and leaves one out that has an empty name. A TSV or CSV file of two or three columns whose first line
    names none that is known has no header: it is read as query, text and label, and the log says so.

    A label is a whole number from 0 or one of yes, no, true, false; with `graded` any number from 0. Ids that are
    missing or empty are made from content, or stay empty without `fill_ids`. One empty side is kept; a row with both
    sides empty, or a second row with the same two ids, is an error.

    Args:
        path: The file.
        format: tsv, csv, jsonl, json, parquet, sheet, markdown, html, zip or folder, where the name does not say it.
        columns: Which of the file's columns is which of ours, such as {"query": "title"}.
        require_label: Refuse a file in which a pair has no label.
        graded: Take any number from 0 as a label, such as .8.
        fill_ids: Make ids that are missing from content, so that equal queries are one list.
    """

    def read(one: Path) -> Iterator[Pair]:
        rows = read_rows(one, format=format, columns=columns, require_label=require_label, graded=graded)
        return (pair for pair, _ in rows)

    path = one_path("path", path)
    shards = _shards(path, format, columns)
    pairs = read(path) if shards is None else shards.chain(read)
    return with_ids(pairs) if fill_ids else pairs


def _shards(path: Path, format: str | None, columns: Columns | None) -> Shards | None:  # noqa: A002
    """The folder as Parquet shards, where it is nothing else."""
    check_given(columns)
    return find_shards(path, columns) if format in (None, "folder") and path.is_dir() else None


def read_rows(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002
    columns: Columns | None = None,
    require_label: bool = False,
    graded: bool = False,
    whole: bool = False,
    on_left_out: Callable[[LeftOut], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[tuple[Pair, Row]]:
    """Yield the pairs of a file, each with the row that it was made of; ids as the file has them.

    Args:
        path: The file or folder.
        format: As for `read_pairs`, as are `columns`, `require_label` and `graded`.
        columns: Which of the file's columns is which of ours.
        require_label: Refuse a pair without a label.
        graded: Take any number from 0 as a label.
        whole: Read the user's own columns, too, where a format could leave them out.
        on_left_out: Called with each skipped row, also with rows that would be refused otherwise. Without it the log
            counts them.
        on_note: Is told what was assumed, such as that there is no header; otherwise the log is.
    """
    path = one_path("path", path)
    shards = _shards(path, format, columns)
    if shards is not None:
        given = {"require_label": require_label, "graded": graded, "whole": whole}
        callbacks = {"on_left_out": on_left_out, "on_note": on_note}
        return shards.chain(lambda one: read_rows(one, columns=columns, **given, **callbacks))  # type: ignore[arg-type]
    kind = format_of(path, format)
    rows = READERS[kind](path, columns, **({"whole": whole} if kind == "parquet" else {}))
    expected = _EXPECTED.get(kind, "rows with the columns query and text")
    checked = _Checked(path, expected, require_label, graded, on_left_out, on_note)
    return checked.rows(rows)


def read_own_columns(path: Path | str, *, columns: Columns | None = None) -> Iterator[tuple[Pair, OwnColumns]]:
    """Yield the pairs of a file, and beside each all that its row holds, as the user has it; ids as `read_pairs`.

    Args:
        path: The file.
        columns: As for `read_pairs`.
    """
    path = one_path("path", path)
    shards = _shards(path, None, columns)
    if shards is not None:
        yield from shards.chain(lambda one: read_own_columns(one, columns=columns))
        return
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
    words just as well; inside an id or a group it is an error. The other formats keep every character. In TSV and CSV a
    cell that a sheet would run as a formula is written with an apostrophe before it, which reading takes away again.
    """
    path = Path(path)
    kind = format_of(path, format)
    if kind not in WRITTEN:
        raise MatchloomError(
            f"{path}: pairs are written as {', '.join(WRITTEN)}, not as {kind}; choose another name",
            code="wrong_format",
        )
    write_rows(path, pairs, kind)


def format_of(path: Path, given: str | None = None) -> str:
    """The format of a file by its name, unless one is given; a folder is one, too."""
    if given is None:
        name = path.name.lower()
        given = FORMATS.get(Path(name.removesuffix(".gz")).suffix)
        if given is None and path.is_dir():
            return "folder"
        if given is None:
            raise MatchloomError(
                f"{path}: no format is known by this name; use one of {', '.join(FORMATS)}", code="wrong_format"
            )
        if given in _PACKED and name.endswith(".gz"):
            raise MatchloomError(f"{path}: {_PACKED[given]} is compressed inside; leave out .gz", code="wrong_format")
    elif given not in READERS:
        raise MatchloomError(f"format {given!r} is unknown; use one of {', '.join(READERS)}", code="unknown_name")
    return given


_EXPECTED = {
    "markdown": "questions as headings, with their answers below",
    "html": "questions as headings, with their answers below",
    "zip": "files with questions and answers in it",
    "folder": "files with questions and answers in it",
}
_PACKED = {"parquet": "Parquet", "sheet": "a sheet", "zip": "zip"}


class _Checked:
    """What readers found, made pairs; what is no pair is refused, or told to who collects it."""

    def __init__(
        self,
        path: Path,
        expected: str,
        require_label: bool,
        graded: bool,
        on_left_out: Callable[[LeftOut], None] | None,
        on_note: Callable[[str], None] | None,
    ) -> None:
        self._path = path
        self._expected = expected
        self._require_label = require_label
        self._graded = graded
        self._on_left_out = on_left_out
        self._on_note = on_note or (lambda text: _log.warning("%s: %s", path, text))
        self._reasons: Counter[str] = Counter()
        self._ids: set[tuple[str, str]] = set()

    def rows(self, found: Iterable[Found]) -> Iterator[tuple[Pair, Row]]:
        """The pairs, each with its row."""
        empty = True
        for one in found:
            if isinstance(one, Note):
                self._on_note(one.text)
                continue
            if isinstance(one, LeftOut):
                self._leave_out(one)
                continue
            empty = False
            try:
                pair = self._pair(one)
            except MatchloomError as error:
                self._leave_out(LeftOut(one.place, str(error).removeprefix(f"{self._path}, {one.place}: "), error))
            else:
                yield pair, one
        if empty:
            raise MatchloomError(f"{self._path} holds no pairs; expected {self._expected}{self._why()}", code="no_data")
        if self._reasons:
            self._on_note(f"{sum(self._reasons.values()):,} skipped{self._why()}")

    def _why(self) -> str:
        """The most frequent reasons for what was left out without being refused."""
        most = "; ".join(f"{reason} ({count:,} times)" for reason, count in self._reasons.most_common(3))
        return f": {most}" if most else ""

    def _leave_out(self, one: LeftOut) -> None:
        if self._on_left_out is not None:
            self._on_left_out(one)
        elif one.error is not None:
            raise one.error
        else:
            self._reasons[one.reason] += 1

    def _pair(self, row: Row) -> Pair:
        where = f"{self._path}, {row.place}"
        pair = pair_of(where, row.values, graded=self._graded)
        if self._require_label and pair.label is None:
            raise MatchloomError(
                f"{where}: there is no label; expected a number, yes or no in the column 'label' (or "
                f"{', '.join(COLUMNS['label'][1:])}; if it has another name: columns={{'label': 'NAME'}})",
                code="bad_row",
            )
        if pair.query_id and pair.text_id:
            ids = (pair.query_id, pair.text_id)
            if ids in self._ids:
                raise MatchloomError(
                    f"{where}: query_id {ids[0]!r} with text_id {ids[1]!r} was already given above; "
                    "ids must differ, or leave the column out: columns={'text_id': ''}",
                    code="bad_row",
                )
            self._ids.add(ids)
        return pair
