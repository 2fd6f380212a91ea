"""The local copy of what is published at a URI: pulled whole, verified, and kept beside the one before.

<home>/7-3f9c01ab/       a saved folder as it was published; it takes its name when every file is verified
<home>/7-3f9c01ab.json   its snapshot
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from matchloom import artifact
from matchloom.basics.files import atomic_write
from matchloom.basics.stores import open_store, shown
from matchloom.publishing import snapshot as s
from matchloom.types import MatchloomError

_PATIENCE = 3600.0  # seconds for which another process of this machine, which pulls the same, is waited for
_KEPT = 2  # versions: the one that is served, and the one that requests may still have


class Copy(NamedTuple):
    """A version that is here, whole."""

    version: int
    folder: Path
    published: float  # seconds since 1970


class Replica:
    """Follows the newest snapshot at a URI; a number that falls is not followed."""

    def __init__(self, uri: str, home: Path, key: bytes | None = None) -> None:
        self.uri, self.home, self._key = shown(uri), home, key
        self._store = open_store(uri)
        self.copy: Copy | None = None

    def newest(self) -> s.Newest:
        """What the store says now."""
        found = s.read_newest(self._store)
        if found is None:
            raise MatchloomError(
                f"{self.uri} has no {s.NEWEST}: nothing was published there; use 'matchloom publish FOLDER {self.uri}'",
                code="missing",
            )
        return found

    def start(self) -> Copy:
        """The newest version; where the store does not answer, or has only what is refused, the one that is here."""
        try:
            return self.pull()
        except MatchloomError:
            kept = self._kept()
            if not kept:
                raise
            self.copy = kept[-1]
            return self.copy

    def pull(self, newest: s.Newest | None = None) -> Copy:
        """Make the newest version the copy; whatever is wrong with it leaves the copy as it was."""
        newest = newest or self.newest()
        with artifact.writing(self.home, wait=_PATIENCE):
            kept = self._kept()
            last = max([one.version for one in kept] + [0 if self.copy is None else self.copy.version])
            if newest.version < last:
                raise MatchloomError(
                    f"{self.uri}/{s.NEWEST} names version {newest.version}, but {last} was here already: an older one "
                    f"is not taken; publish again, or remove {self.home}",
                    code="altered",
                )
            found = s.read_snapshot(self._store, newest, self._key)
            folder = self.home / Path(newest.snapshot).stem
            if not folder.is_dir() or (self.copy is None and not _is_whole(folder, found)):
                self._fetch(found, folder, kept)
            self.copy = Copy(found.version, folder, found.published)
            for old in kept[: -(_KEPT - 1)]:
                if old.folder != folder:
                    shutil.rmtree(old.folder, ignore_errors=True)  # what is mapped stays until it is let go
                    _list_of(old.folder).unlink(missing_ok=True)
        return self.copy

    def _fetch(self, found: s.Snapshot, folder: Path, kept: list[Copy]) -> None:
        have = {file.checksum: one.folder / name for one in kept for name, file in _files_of(one.folder).items()}
        missing = sum(file.bytes for file in found.files.values() if file.checksum not in have)
        free = shutil.disk_usage(self.home).free
        if missing > free:
            raise MatchloomError(
                f"version {found.version} of {self.uri} needs {missing:,} bytes, {self.home} has {free:,}",
                code="unwritable",
            )
        aside = folder.with_name(f".{folder.name}.{os.getpid()}-{threading.get_ident()}.tmp")
        try:
            for name, file in found.files.items():
                path = aside / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if not _linked(have.get(file.checksum), file, path):
                    self._fetch_file(file, path)
            with atomic_write(_list_of(folder), "wb") as stream:
                stream.write(s.pack(found))
            if folder.is_dir():  # what was damaged here
                shutil.rmtree(folder)
            aside.rename(folder)
        except OSError as error:
            raise MatchloomError(
                f"{error.filename or folder} cannot be written: {error.strerror or error}", code="unwritable"
            ) from None
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _fetch_file(self, file: s.File, path: Path) -> None:
        digest, size = hashlib.sha256(), 0
        with path.open("wb") as stream:
            for piece in self._store.fetch(f"{s.FILES}/{file.checksum}", file.bytes + 1):
                digest.update(piece)
                size += len(piece)
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        if size != file.bytes or digest.hexdigest() != file.checksum:
            raise MatchloomError(
                f"{self.uri}/{s.FILES}/{file.checksum} is damaged or was altered; publish again (again=True)",
                code="altered",
            )
        path.chmod(0o444)

    def _kept(self) -> list[Copy]:
        """The versions that are here, oldest first."""
        found = []
        for path in self.home.glob("*-*.json"):
            with suppress(MatchloomError):
                own = s.unpack_snapshot(str(self.home), path.name, path.read_bytes())
                if path.with_suffix("").is_dir():
                    found.append(Copy(own.version, path.with_suffix(""), own.published))
        return sorted(found)


def _list_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.json")


def _files_of(folder: Path) -> dict[str, s.File]:
    with suppress(MatchloomError, OSError):
        path = _list_of(folder)
        return s.unpack_snapshot(str(path.parent), path.name, path.read_bytes()).files
    return {}


def _linked(old: Path | None, file: s.File, path: Path) -> bool:
    """Whether a file that is here already, whole, could be given another name."""
    if old is None or not _is_file(old, file):
        return False
    try:
        path.hardlink_to(old)
    except OSError:
        return False
    return True


def _is_whole(folder: Path, found: s.Snapshot) -> bool:
    return all(_is_file(folder / name, file) for name, file in found.files.items())


def _is_file(path: Path, file: s.File) -> bool:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.checksum
    except OSError:
        return False
