"""What every file of a table was when it was written, so that damage is found and not guessed.

LanceDB writes a file once and never changes it, but keeps no digests: a flipped bit may change a letter of an answer,
or drop a row, unseen. So beside the table `pairs-1.lance` there is `pairs-1.seals`, one line for each write, which is
appended before the write is reported:

    {"begun": true}                                     a write begins; as the last line: it was cut off
    {"version": 9, "rows": 198, "done": "3 added",      the table's version and rows after it
     "settings": {...},                                 what archive.json holds then, in case that is lost
     "files": {"data/x.lance": [12952, "<SHA-256>"]}}   the files that are new

Each line starts with a digest of itself. Seals tell accidents; who may write the folder may write seals too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from matchloom.basics.files import atomic_write
from matchloom.search.lance.manifest import table_folder
from matchloom.types import MatchloomError

_HINT = "_versions/latest_version_hint.json"  # the one file that LanceDB writes again; it is only a hint
_VERSION = re.compile(r"_versions/([0-9]{1,20})\.manifest")
_TAIL = 100_000  # bytes in which the newest version's seal is found


class Seal(NamedTuple):
    """What a file was."""

    size: int
    digest: str


class Write(NamedTuple):
    """A version that was reported: how many rows it has, and what was done."""

    rows: int
    done: str


class _Record(Struct, forbid_unknown_fields=True):
    begun: bool = False
    version: Annotated[int, Meta(ge=0)] = 0
    rows: Annotated[int, Meta(ge=0)] = 0
    done: str = ""
    settings: dict[str, Any] | None = None
    files: dict[str, tuple[int, str]] = {}


class Seals:
    """The seals of one table, as they were read."""

    def __init__(self) -> None:
        self.files: dict[str, Seal] = {}
        self.writes: dict[int, Write] = {}
        self.settings: dict[str, Any] | None = None
        self.begun = False  # a write was cut off
        self.damaged = 0  # lines
        self.there = False

    @classmethod
    def read(cls, folder: Path, table: str, *, tail: bool = False) -> Seals:
        """Those of a table, or with `tail` the newest of them; of a table that has none, empty ones."""
        seals = cls()
        try:
            with _path(folder, table).open("rb") as file:
                skipped = max(0, os.fstat(file.fileno()).st_size - _TAIL) if tail else 0
                file.seek(skipped)
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return seals
        except OSError as error:
            raise MatchloomError(f"{_path(folder, table)} cannot be read: {error.strerror or error}") from None
        seals.there = True
        lines.pop()  # nothing, or a line that a kill cut off
        for line in lines[1:] if skipped else lines:
            record = _parsed(line)
            if record is None:
                seals.damaged += 1
            else:
                seals._take(record)
        return seals

    def _take(self, record: _Record) -> None:
        self.begun = record.begun
        if record.begun:
            return
        self.files |= {name: Seal(*seal) for name, seal in record.files.items()}
        self.writes[record.version] = Write(record.rows, record.done)
        self.settings = record.settings or self.settings


def version_of(name: str) -> int | None:
    """Which version a file of a table is the manifest of, if of any. LanceDB counts names down from 2**64 - 1."""
    found = _VERSION.fullmatch(name)
    if found is None:
        return None
    return 2**64 - 1 - int(found[1]) if len(found[1]) == 20 else int(found[1])


def files_of(folder: Path, table: str) -> set[str]:
    """The files of a table by their names in its folder, but for the hint."""
    root = table_folder(folder, table)

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # a folder that others remove
            raise MatchloomError(f"{error.filename} cannot be read: {error.strerror}; check its permissions") from None

    walk = os.walk(root, onerror=refuse)
    found = {(Path(where) / name).relative_to(root).as_posix() for where, _, names in walk for name in names}
    return found - {_HINT}


def seal_of(path: Path) -> Seal:
    """What a file is now."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return Seal(os.fstat(file.fileno()).st_size, digest)
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}") from None


class Sealing:
    """One write, from its beginning to its seal."""

    def __init__(self, folder: Path, table: str) -> None:
        self._folder, self._table = folder, table
        self._before = files_of(folder, table)
        self._seals = Seals.read(folder, table)
        self._sealed = False

    @property
    def unsealed(self) -> bool:
        """Whether an earlier write was cut off, or is older than seals are."""
        return self._seals.begun or not self._seals.there

    @property
    def idle(self) -> bool:
        """Whether nothing was written, and nothing need be sealed."""
        return not self._sealed and not self.unsealed and files_of(self._folder, self._table) == self._before

    def seal(self, version: int, rows: int, done: str, settings: Mapping[str, Any]) -> None:
        """Append the seals of what is new. Where old files went, as they do when files are merged, write all anew."""
        self._sealed = True
        now = files_of(self._folder, self._table)
        new = {
            name: seal_of(self._folder / f"{self._table}.lance" / name) for name in sorted(now - set(self._seals.files))
        }
        gone = (self._before - now) & set(self._seals.files)
        last = _line({"version": version, "rows": rows, "done": done, "settings": dict(settings), "files": new})
        if not gone and self._seals.there:
            _append(self._folder, self._table, last)
            return
        kept = {name: seal for name, seal in self._seals.files.items() if name not in gone}
        versions = {number for name in now if (number := version_of(name)) is not None}
        lines = [
            _line({"version": number, "rows": write.rows, "done": write.done})
            for number, write in sorted(self._seals.writes.items())
            if number in versions and number != version
        ]
        first = min((number for number in self._seals.writes if number in versions), default=version)
        lines.insert(0, _line({"version": first, "rows": rows, "done": "", "files": kept}))
        with atomic_write(_path(self._folder, self._table), "wb") as file:
            file.writelines([*lines, last])


@contextmanager
def sealing(folder: Path, table: str) -> Iterator[Sealing]:
    """While a table is written: a line that says so, which goes again if nothing was written."""
    work = Sealing(folder, table)
    start = _append(folder, table, _line({"begun": True}))
    yield work
    if work.idle:
        os.truncate(_path(folder, table), start)


def check_newest(folder: Path | str, table: str) -> None:
    """Refuse a table whose newest version is not what was sealed, before LanceDB stumbles over it."""
    if not isinstance(folder, Path):  # an object store
        return
    try:
        with os.scandir(table_folder(folder, table) / "_versions") as found:
            names = [f"_versions/{entry.name}" for entry in found]
    except OSError:  # LanceDB says what is wrong
        return
    versions = {number: name for name in names if (number := version_of(name)) is not None}
    if not versions:
        return
    newest = max(versions)
    seal = Seals.read(folder, table, tail=True).files.get(versions[newest])
    path = folder / f"{table}.lance" / versions[newest]
    try:
        damaged = seal is not None and path.exists() and seal != seal_of(path)
    except MatchloomError:  # others may remove it
        return
    if damaged:
        raise MatchloomError(
            f"{folder} is damaged (version {newest} of its table, {path.name}); 'matchloom doctor {folder} --repair' "
            "goes back to the newest version that is whole"
        )


def _path(folder: Path, table: str) -> Path:
    table_folder(folder, table)  # links are refused
    return folder / f"{table}.seals"


def _line(record: Mapping[str, Any]) -> bytes:
    content = json.dumps(record, ensure_ascii=True).encode()
    return _digest(content) + b" " + content + b"\n"


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest()[:16].encode()


def _parsed(line: bytes) -> _Record | None:
    digest, _, content = line.partition(b" ")
    if digest != _digest(content):
        return None
    try:
        return msgspec.json.decode(content, type=_Record)
    except (ValueError, RecursionError):
        return None


def _append(folder: Path, table: str, line: bytes) -> int:
    """Behind whole lines: what a kill cut off goes first. Where the line starts."""
    path = _path(folder, table)
    try:
        with path.open("r+b" if path.exists() else "x+b") as file:
            start = _end_of_lines(file.fileno())
            file.truncate(start)
            file.seek(start)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            return start
    except OSError as error:
        raise MatchloomError(
            f"{folder} was not written ({error.strerror or error}); what was reported before is unchanged"
        ) from None


def _end_of_lines(file: int) -> int:
    size = os.fstat(file).st_size
    end = size
    while end > 0:
        start = max(0, end - 4096)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
