"""A collection follows a file: what the file says anew is taken over, if held-out questions are not worse for it.

What the file said last time is kept in the folder, so that only what changed in the file is changed here: an entry, a
question or a value that was added elsewhere stays, and one that was changed in both is as the file has it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from matchloom.artifact.checks import read_regular
from matchloom.basics.files import atomic_write, held
from matchloom.basics.growing import open_regular
from matchloom.data.entries import Entry
from matchloom.data.identity import normalize_text
from matchloom.search.entries import Entries
from matchloom.search.judged import Comparison, compare_on_held_out
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.search.collection import Collection

_NOTE = ".source.json"
_LARGEST = 4 * 2**30  # bytes of a file that is followed, and of what is kept of it


class Taken(NamedTuple):
    """What became of a file: how many entries it changes, and how held-out questions fare before and after."""

    put: int
    removed: int
    questions: int  # that were held out
    before: float | None
    after: float | None
    taken: bool
    why: str


class _Kept(msgspec.Struct):
    text: str
    questions: list[str]
    columns: dict[str, str]


class _Note(msgspec.Struct):
    digest: str  # of the file as it was looked at last
    entries: dict[str, _Kept]  # of the file as it was taken last


def take_source(collection: Collection, source: Path | str) -> Taken:
    """Take over what a file says anew; nothing where held-out questions find their answer less often by it.

    Args:
        collection: One in a folder.
        source: A file as 'matchloom fit' reads it.
    """
    from matchloom.search.changes import entries_of

    path, folder = Path(source), collection.folder
    if folder is None:
        raise MatchloomError("only a collection in a folder follows a file; save it first", code="not_supported")
    with _opened(path) as file:  # what is read is the file whose digest is noted, though another takes its name
        seen = _digest(path, file)
        read, note = entries_of(path), _read(folder)
    old = note.entries if note is not None else {}
    new = {name: _kept(read[n]) for n, name in enumerate(read.ids)}
    current = collection.entries
    put = [
        entry
        for name, said in new.items()
        if (entry := _merged(name, said, old.get(name), current)) is not None and entry != _entry(current, name)
    ]
    gone = [name for name in old if name not in new and current.row(name) is not None]
    if not put and not gone:
        _write(folder, _Note(seen, new))
        return Taken(0, 0, 0, None, None, True, "nothing has changed")
    found = _compared(collection, current, put, gone)
    done = Taken(len(put), len(gone), found.questions, found.before, found.after, not found.worse, "")
    if found.worse:
        _write(folder, _Note(seen, old))
        return done._replace(why="held-out questions find their answer significantly less often")
    collection.apply(put, gone)
    _write(folder, _Note(seen, new))
    return done


def file_digest(path: Path) -> str:
    """What differs when the file does; what is no regular file, or never ends, is refused."""
    with _opened(path) as file:
        return _digest(path, file)


def _opened(path: Path) -> AbstractContextManager[BinaryIO]:
    return held(path, open_regular(path, os.O_RDONLY, "question with its answer"))


def _digest(path: Path, file: BinaryIO) -> str:
    digest = hashlib.blake2b()
    try:
        left = file.seek(0, os.SEEK_END)
        file.seek(0)
        if left > _LARGEST:
            raise MatchloomError(
                f"{path} has {left:,} bytes; a file of up to {_LARGEST:,} is followed", code="too_large"
            )
        while left > 0 and (piece := file.read(min(left, 2**20))):  # what grows meanwhile is looked at next time
            digest.update(piece)
            left -= len(piece)
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}", code="unreadable") from None
    return digest.hexdigest()[:32]


def last_seen(folder: Path) -> str | None:
    """The digest of the file as it was looked at last."""
    note = _read(folder)
    return None if note is None else note.digest


def _compared(collection: Collection, current: Entries, put: Sequence[Entry], gone: Sequence[str]) -> Comparison:
    """Questions that stay with their entry, asked of what is there and of what there would be."""
    there = {name: current[n] for n, name in enumerate(current.ids)}
    after = {**there, **{entry.id: entry for entry in put}}
    for name in gone:
        after.pop(name, None)
    later = Entries.listed(after[name] for name in sorted(after))
    stays = {name: {normalize_text(one) for one in entry.questions} for name, entry in after.items()}
    own = [
        tuple(q for q in mine if normalize_text(q) in stays.get(name, ()))
        for name, mine in zip(current.ids, current.questions, strict=True)
    ]
    return compare_on_held_out(replace(current, questions=own), current, later, collection._made_of)


def _merged(name: str, said: _Kept, before: _Kept | None, current: Entries) -> Entry | None:
    """An entry with what the file changed in it; None where the file says what it said, or it was removed here."""
    there = _entry(current, name)
    if before == said and before is not None:
        return there
    if there is None:
        return Entry(name, said.text, tuple(said.questions), said.columns)
    was = before or _Kept("", [], {})
    dropped = {normalize_text(one) for one in was.questions} - {normalize_text(one) for one in said.questions}
    known = {normalize_text(one) for one in said.questions}
    kept = [one for one in there.questions if normalize_text(one) not in dropped | known]
    columns = {key: value for key, value in there.columns.items() if key in said.columns or key not in was.columns}
    text = there.text if before is not None and before.text == said.text else said.text
    return Entry(there.id, text, tuple(sorted({*said.questions, *kept})), {**columns, **said.columns})


def _entry(entries: Entries, name: str) -> Entry | None:
    row = entries.row(name)
    if row is None:
        return None
    found = entries[row]
    return found._replace(columns=dict(found.columns))


def _kept(entry: Entry) -> _Kept:
    return _Kept(entry.text, list(entry.questions), dict(entry.columns))


def _read(folder: Path) -> _Note | None:
    try:
        return msgspec.json.decode(read_regular(folder / _NOTE, _LARGEST, "remove it"), type=_Note)
    except (MatchloomError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return None


def _write(folder: Path, note: _Note) -> None:
    with atomic_write(folder / _NOTE) as file:
        file.write(msgspec.json.encode(note).decode() + "\n")
