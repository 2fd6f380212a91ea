"""An artifact that is written: all of it is on the disk before one rename makes it the folder's."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from matchloom.artifact.kinds import kind_of
from matchloom.artifact.lock import writing
from matchloom.artifact.manifest import dumps, manifest_name, parse, sha256
from matchloom.basics.files import atomic_write
from matchloom.types import MatchloomError

Content = bytes | Callable[[BinaryIO], None]
_PATIENCE = 60.0  # seconds for which another writer is waited for


class Saveable(Protocol):
    """What writes itself as an artifact."""

    def save(self, folder: Path, /) -> None:
        """Write it into a folder."""
        ...


def write(
    folder: Path | str,
    kind: str,
    version: int,
    settings: Mapping[str, Any],
    files: Mapping[str, Content] | None = None,
    *,
    inside: Mapping[str, Saveable] | None = None,
) -> None:
    """Write an artifact into its folder, which is made if it is new, while nobody else writes there.

    All files are on the disk before the first takes its name. The manifest takes its name last, and what only the old
    one named is removed after that. So a kill leaves the old artifact or the new one where files have new names each
    time, as artifacts inside have; where names are used again it may leave a folder that reading refuses.

    Args:
        folder: Where.
        kind: What it is; its manifest is `<kind>.json`.
        version: Of the format of settings and files.
        settings: Whatever JSON holds.
        files: Bytes by name, or functions that write them to a stream.
        inside: Other artifacts by name, each in a folder of its own.
    """
    folder, files, inside = Path(folder), files or {}, inside or {}
    with writing(folder, wait=_PATIENCE, held=True):
        old = _old_names(folder, kind)
        homes = {name: _free(folder, name, old) for name in inside}
        checksums: dict[str, str] = {}
        with _replacing(folder / manifest_name(kind)) as switch:
            with ExitStack() as stack:
                for name, thing in inside.items():
                    aside = stack.enter_context(_aside(homes[name]))
                    thing.save(aside)
                    inner = kind_of(aside)
                    if inner is None:
                        raise MatchloomError(f"{type(thing).__name__} cannot be kept in a folder")
                    content = (aside / manifest_name(inner)).read_bytes()
                    checksums[f"{homes[name].name}/{manifest_name(inner)}"] = sha256(content)
                for name, given in files.items():
                    checksums[name] = _put(stack.enter_context(_replacing(folder / name)), given)
                manifest: dict[str, Any] = {"kind": kind, "format": version, "settings": settings}
                if inside:
                    manifest["inside"] = {name: home.name for name, home in homes.items()}
                _put(switch, dumps({**manifest, "checksums": checksums}))
            _sync(folder)  # every name is on the disk before the one that counts
        _sync(folder)
        for name in old - files.keys() - {home.name for home in homes.values()}:
            _remove(folder / name)


class _Hashed:
    """A stream that is written, and its checksum."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.digest = stream, hashlib.sha256()

    def write(self, content: Any) -> int:
        """Write some bytes."""
        self.digest.update(content)
        return self._stream.write(content)

    def flush(self) -> None:
        """To the system."""
        self._stream.flush()


def _put(stream: BinaryIO, content: Content) -> str:
    """Write a file to the disk; its checksum."""
    hashed: Any = _Hashed(stream)
    if isinstance(content, bytes):
        hashed.write(content)
    else:
        content(hashed)
    stream.flush()
    os.fsync(stream.fileno())
    return str(hashed.digest.hexdigest())


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its name at the end. A link could lead a writer to any file of its user, a pipe to nowhere."""
    try:
        special = not stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        special = False  # it is not there, or writing says what is wrong
    if special:
        raise MatchloomError(f"{path} is no file, and is not replaced; remove it, or choose another folder")
    with atomic_write(path, "wb") as stream:
        yield stream


@contextmanager
def _aside(home: Path) -> Iterator[Path]:
    """A folder that takes its name, which is free, at the end."""
    aside = home.with_name(f".{home.name}.{os.getpid()}-{threading.get_ident()}.tmp")  # as files.TEMPORARY has it
    shutil.rmtree(aside, ignore_errors=True)
    try:
        yield aside
        _sync(aside)
        shutil.rmtree(home, ignore_errors=True)
        aside.rename(home)
    except OSError as error:
        raise MatchloomError(f"{home} was not written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _free(folder: Path, name: str, old: set[str]) -> Path:
    """A folder of this name that the old manifest does not have; what a killed writer left there may be replaced."""
    number = 1
    while True:
        home = folder / (name if number == 1 else f"{name}-{number}")
        if home.name not in old and (not os.path.lexists(home) or (home.is_dir() and kind_of(home) is not None)):
            return home
        number += 1


def _old_names(folder: Path, kind: str) -> set[str]:
    try:
        return parse(folder, kind, None, remedy="").names
    except MatchloomError:
        return set()  # there is none, or none that tells


def _remove(path: Path) -> None:
    with suppress(OSError):  # what stays is named by nothing
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Names, too, are on the disk."""
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # of a file system that cannot
            raise MatchloomError(f"{folder} was not written ({error.strerror or error})") from None
