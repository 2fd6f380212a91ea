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
from matchloom.artifact.manifest import dumps, manifest_name, next_of, parse, sha256
from matchloom.artifact.saved import is_next
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

    Files are on the disk as `.<kind>.<name>.next`, and artifacts inside under new names, before the manifest is
    replaced: that is the switch. Then files take their names, and what only the old manifest named is removed. Who
    reads in between takes a `.next` that has the checksum of the manifest. So a kill, or a full disk, leaves the old
    artifact or the new one.

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
        nexts = {name: next_of(folder, kind, name) for name in files}
        fresh = [home for home in homes.values() if not os.path.lexists(home)]
        for path in (*(folder / name for name in files), folder / manifest_name(kind)):
            _refuse_special(path)
        content = b""
        try:
            with ExitStack() as stack:
                checksums = _put_inside(stack, inside, homes)
                for name, given in files.items():
                    checksums[name] = _put(stack.enter_context(atomic_write(nexts[name], "wb")), given)
            manifest: dict[str, Any] = {"kind": kind, "format": version, "settings": settings}
            if inside:
                manifest["inside"] = {name: home.name for name, home in homes.items()}
            content = dumps({**manifest, "checksums": checksums})
            with atomic_write(folder / manifest_name(kind), "wb") as switch:
                _put(switch, content)
                _sync(folder)  # every name is on the disk before the one that counts
        except BaseException:
            if not _is_switched(folder / manifest_name(kind), content):
                for path in (*fresh, *nexts.values()):
                    _remove(path)
            raise
        _sync(folder)
        _take_names(folder, nexts)
        for name in old - files.keys() - {home.name for home in homes.values()}:
            _remove(folder / name)


def remove(folder: Path | str, kind: str) -> None:
    """Remove an artifact from its folder, and leave what else is there; nothing where there is none."""
    folder = Path(folder)
    names = _old_names(folder, kind)
    for name in (manifest_name(kind), *names):  # without its manifest it is none
        _remove(folder / name)


def _is_switched(path: Path, content: bytes) -> bool:
    """Whether the new manifest has taken its name; an interruption may come right after that."""
    with suppress(OSError):
        return bool(content) and path.read_bytes() == content
    return False


def _put_inside(stack: ExitStack, inside: Mapping[str, Saveable], homes: Mapping[str, Path]) -> dict[str, str]:
    """Write the artifacts inside; the checksums of their manifests."""
    checksums = {}
    for name, thing in inside.items():
        aside = stack.enter_context(_aside(homes[name]))
        thing.save(aside)
        inner = kind_of(aside)
        if inner is None:
            raise MatchloomError(f"{type(thing).__name__} cannot be kept in a folder", code="not_supported")
        content = (aside / manifest_name(inner)).read_bytes()
        checksums[f"{homes[name].name}/{manifest_name(inner)}"] = sha256(content)
    return checksums


def _take_names(folder: Path, nexts: Mapping[str, Path]) -> None:
    for name, path in nexts.items():
        try:
            path.replace(folder / name)
        except OSError as error:
            raise MatchloomError(f"{path} cannot be renamed to {name}: {error.strerror}", code="unwritable") from None


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


def _refuse_special(path: Path) -> None:
    """A link could lead a writer to any file of its user, a pipe to nowhere."""
    try:
        special = not stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return  # it is not there, or writing says what is wrong
    if special:
        raise MatchloomError(
            f"{path} is no file, and is not replaced; remove it, or choose another folder", code="unwritable"
        )


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
    """What belongs to the artifact that is there. What a killed writer had still to do is done, or undone."""
    names: set[str] = set()
    with suppress(MatchloomError):  # there is none, or none that tells
        manifest = parse(folder, kind, None, remedy="")
        names = manifest.names
        nexts = {name: next_of(folder, kind, name) for name in manifest.checksums if "/" not in name}
        _take_names(folder, {name: path for name, path in nexts.items() if is_next(path, manifest.checksums[name])})
    for path in folder.glob(next_of(folder, kind, "*").name):
        _remove(path)
    return names


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
