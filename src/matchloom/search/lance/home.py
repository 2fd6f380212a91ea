"""Where an archive is: a folder of this machine, or a URI of an object store such as s3://bucket/name.

A folder has a lock, digests of every file (seals.py) and settings that are replaced by a rename. An object store has
none of these: it keeps digests of its own, writes a file whole or not at all, and LanceDB commits by conditional puts,
so that two writers lose nothing and add no key twice (`Store.create`). What another process wrote is seen in a second.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from matchloom.basics.stores import ObjectStore, shown
from matchloom.search.lance import manifest as files
from matchloom.search.lance.connection import connect, run, storage_options, told_in_one_line
from matchloom.search.lance.manifest import FILE, LARGEST, ArchiveManifest, manifest_of_bytes
from matchloom.search.lance.newest import Newest, Polled
from matchloom.search.lance.seals import Sealing, sealing
from matchloom.search.lance.table import Store
from matchloom.types import MatchloomError

Where = Path | str  # the second is a URI
_TRIES, _PAUSE = 10, 0.05  # readings of settings that are replaced meanwhile, and seconds between two
POLL = 1.0  # seconds for which what was read of an object store is taken to be so


class Work(Protocol):
    """A write, from its beginning to its seal."""

    @property
    def unsealed(self) -> bool:
        """Whether an earlier write was cut off."""
        ...

    def seal(self, version: int, rows: int, done: str, settings: Mapping[str, Any]) -> None:
        """Say what was written."""
        ...


class Home(Protocol):
    """What an archive needs of where it is."""

    where: Where

    def connect(self) -> Any:
        """LanceDB's connection."""
        ...

    def newest(self, database: Any) -> Newest | Polled:
        """What opens the newest version of a table."""
        ...

    def read(self) -> ArchiveManifest:
        """The settings."""
        ...

    def write(self, manifest: ArchiveManifest) -> None:
        """Take effect for every reader."""
        ...

    def stamp(self) -> object:
        """What changes whenever the settings are replaced."""
        ...

    def writing(self) -> Any:
        """A context: one writer at a time, where there is a lock."""
        ...

    def sealing(self, table: str) -> Any:
        """A context: a write of a table, begun and sealed."""
        ...

    def made(self, table: str) -> Work:
        """The first seal of a new table."""
        ...

    def prepare(self, database: Any) -> None:
        """Refuse what is not empty."""
        ...

    def clear(self, database: Any, table: str) -> None:
        """Remove what a table of this name left."""
        ...

    def erase(self, database: Any, table: str) -> None:
        """Remove the archive."""
        ...

    def size(self) -> int | None:
        """Bytes, where they can be told quickly."""
        ...


def home_of(where: Where) -> Home:
    """The home of an archive."""
    return FolderHome(where) if isinstance(where, Path) else ObjectHome(where)


class FolderHome:
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.where: Where = folder
        self._folder = folder

    def connect(self) -> Any:
        """LanceDB's connection."""
        return connect(self._folder)

    def newest(self, database: Any) -> Newest:
        """What opens the newest version of a table."""
        return Newest(database, self._folder)

    def read(self) -> ArchiveManifest:
        """The settings."""
        return files.read_manifest(self._folder)

    def write(self, manifest: ArchiveManifest) -> None:
        """Take effect for every reader."""
        manifest.write(self._folder)

    def stamp(self) -> object:
        """What changes whenever the settings are replaced."""
        return files.stamp(self._folder)

    def writing(self) -> Any:
        """One writer at a time, also among processes; leftovers of dead ones go."""
        return files.writing(self._folder)

    def sealing(self, table: str) -> Any:
        """A line that says that a table is written, and one that says how it is afterwards."""
        return sealing(self._folder, table)

    def made(self, table: str) -> Work:
        """The first seal of a new table."""
        return Sealing(self._folder, table)

    def prepare(self, database: Any) -> None:
        """Refuse what is not empty."""
        files.prepare(self._folder)

    def clear(self, database: Any, table: str) -> None:
        """What dead writers left goes with the lock."""

    def erase(self, database: Any, table: str) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder)

    def size(self) -> int | None:
        """Bytes."""
        return files.size_of(self._folder)


class _Unsealed:
    """A write where nothing is sealed."""

    unsealed = False

    def seal(self, version: int, rows: int, done: str, settings: Mapping[str, Any]) -> None:
        """The store has digests of its own."""


class ObjectHome:
    """An object store, by what pyarrow and LanceDB both read of a URI."""

    def __init__(self, uri: str) -> None:
        self.where: Where = shown(uri)
        self._uri = uri
        self._read: tuple[float, bytes] | None = None

    @cached_property
    def _store(self) -> ObjectStore:
        return ObjectStore(self._uri)

    def connect(self) -> Any:
        """LanceDB's connection."""
        return connect(self.where, storage_options(self._uri))

    def newest(self, database: Any) -> Polled:
        """What opens the newest version of a table, at most once a second."""
        return Polled(database, self.where, POLL)

    def read(self) -> ArchiveManifest:
        """The settings. pyarrow asks how long a file is before it reads it: one that is replaced between the two is cut
        off, and read again."""
        for _ in range(_TRIES):
            content = self._content()
            if not content:
                raise MatchloomError(
                    f"{self.where} is no archive: it has no {FILE}; 'matchloom index {self.where} PAIRS --store lance' "
                    "makes one",
                    code="missing",
                )
            try:
                return manifest_of_bytes(self.where, content)
            except MatchloomError:
                raise
            except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
                self._read = None
                time.sleep(_PAUSE)
        raise MatchloomError(f"{self.where}/{FILE} is damaged; index the pairs again", code="damaged")

    def write(self, manifest: ArchiveManifest) -> None:
        """Take effect for every reader, in a second."""
        self._store.put(FILE, iter([manifest.content()]))
        self._read = None

    def stamp(self) -> object:
        """The settings themselves."""
        return self._content()

    def _content(self) -> bytes:
        """As they were a second ago at most."""
        now, read = time.monotonic(), self._read
        if read is not None and now - read[0] < POLL:
            return read[1]
        content = self._store.read(FILE, LARGEST) or b""
        self._read = (now, content)
        return content

    @contextmanager
    def writing(self) -> Iterator[None]:
        """LanceDB has those who write side by side wait for each other, commit by commit."""
        self._read = None
        yield

    @contextmanager
    def sealing(self, table: str) -> Iterator[Work]:
        """Nothing is sealed."""
        yield _Unsealed()

    def made(self, table: str) -> Work:
        """Nothing is sealed."""
        return _Unsealed()

    def prepare(self, database: Any) -> None:
        """Refuse what is there; what a creation that was cut off left goes, if it has no rows."""
        if self._content():
            raise MatchloomError(f"{self.where} is an archive already; open it, or choose another URI", code="exists")
        for name in self._tables(database):
            if len(Store.open(database, self.where, name)):
                raise MatchloomError(
                    f"{self.where} holds the pairs of an archive ({name}) but no {FILE}; choose another URI",
                    code="exists",
                )
            self.clear(database, name)

    def clear(self, database: Any, table: str) -> None:
        """Remove what a table of this name left."""
        if table in self._tables(database):
            with told_in_one_line(self.where):
                run(database.drop_table(table))

    def erase(self, database: Any, table: str) -> None:
        """Remove the settings, by which it is known, then the table."""
        self._store.remove(FILE)
        self._read = None
        self.clear(database, table)

    def _tables(self, database: Any) -> list[str]:
        with told_in_one_line(self.where):
            return list(run(database.list_tables()).tables)

    def size(self) -> int | None:
        """A store would have to list all files."""
        return None
