"""Entries out of a collection and into it, as a file that sheets and programs read."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from matchloom.basics.files import atomic_write
from matchloom.data.entries import Entry
from matchloom.data.formats.sheet_guard import guarded
from matchloom.data.identity import digest, normalize_text
from matchloom.service.problems import Refused
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.search.entries import Entries

_OPTION = re.compile(
    r"[;,] [^;,]*columns=\{.*?\}"
)  # advice to who calls a function; here the file is what can be changed
FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


def exported(entries: Entries, form: str) -> bytes:
    """One row for each question of an entry, with its columns; in CSV no cell that a sheet would run as a formula."""
    names = sorted({name for own in entries.columns or () for name in own})
    rows = (
        {"text_id": one.id, "question": question, "answer": one.text, **one.columns}
        for one in (entries[n] for n in range(len(entries)))
        for question in one.questions or ("",)
    )
    if form == "jsonl":
        return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\r\n")
    header = ["text_id", "question", "answer", *names]
    writer.writerow([guarded(name) for name in header])
    writer.writerows([guarded(str(row.get(name, ""))) for name in header] for row in rows)
    return made.getvalue().encode()


class Import(NamedTuple):
    """What a file would change."""

    put: list[Entry]
    remove: list[str]
    new: int
    same: int


def read_import(content: str, form: str) -> tuple[list[Entry], list[str]]:
    """The entries of a file's content, read as 'matchloom fit' reads it, and what was assumed and left out of it."""
    from matchloom.data.entries import entries_of
    from matchloom.data.formats.pairs import read_rows
    from matchloom.data.formats.values import own_columns

    notes: list[str] = []
    with _scratch() as folder:
        file = folder / f"import.{form}"
        with atomic_write(file, "wb") as stream:
            stream.write(content.encode(errors="replace"))
        try:
            rows = read_rows(file, whole=True, on_note=notes.append)
            return _named(entries_of((pair, own_columns(row)) for pair, row in rows)), notes
        except MatchloomError as error:
            said = _OPTION.sub("", str(error)).replace(str(file), "the file")
            raise Refused(422, "refused", said) from None


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder that is thrown away; there may be no room for one."""
    try:
        made = tempfile.TemporaryDirectory(prefix="matchloom-", ignore_cleanup_errors=True)
    except OSError as error:
        raise MatchloomError(
            f"{error.filename or 'a temporary folder'} cannot be made: {error.strerror or error}", code="unwritable"
        ) from None
    with made as folder:
        yield Path(folder)


def _named(entries: list[Entry]) -> list[Entry]:
    """With the ids of a column `id` where there is no text_id and each entry has one of its own."""
    ids = [one.columns.get("id", "").strip() for one in entries]
    made = all(one.id == digest(normalize_text(one.text)) for one in entries)
    if not made or "" in ids or len(set(ids)) < len(ids):
        return entries
    others = ({key: value for key, value in one.columns.items() if key != "id"} for one in entries)
    return [one._replace(id=name, columns=own) for one, name, own in zip(entries, ids, others, strict=True)]


def planned(entries: Entries, given: Iterable[Entry], *, replace: bool) -> Import:
    """What would be put and removed; without `replace` an entry keeps the questions and columns it has."""
    put, names, new, same = [], set(), 0, 0
    for one in given:
        row = entries.row(one.id)
        row = entries.find(one.text) if row is None else row
        there = None if row is None else entries[row]
        if there is None:
            names.add(one.id)
            new += 1
            put.append(one)
            continue
        names.add(there.id)
        made = Entry(there.id, one.text, one.questions, one.columns)
        if not replace:
            made = Entry(there.id, one.text, _joined(there.questions, one.questions), {**there.columns, **one.columns})
        if _same(made, there):
            same += 1
        else:
            put.append(made)
    gone = [name for name in entries.ids if name not in names] if replace else []
    return Import(put, gone, new, same)


def _joined(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*old, *new)))


def _same(one: Entry, other: Entry) -> bool:
    def key(entry: Entry) -> tuple[Any, ...]:
        own: Mapping[str, str] = entry.columns
        return entry.text, sorted(entry.questions), sorted(own.items())

    return key(one) == key(other)
