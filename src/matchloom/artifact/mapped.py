"""An artifact whose files are mapped and not read: a collection of millions opens in the time of its manifest.

Files of up to 256 MB are compared with their checksums when the folder is opened, as those of every artifact. Larger
ones are compared by `verify` alone.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from matchloom.artifact.checks import as_saved, is_folder, read_regular
from matchloom.artifact.kinds import load_kind
from matchloom.artifact.manifest import Manifest, holds, manifest_name, next_of, parse, sha256
from matchloom.types import MatchloomError

COMPARED = 256 * 2**20  # bytes of a file
_BLOCK = 2**20


class Mapped:
    """A folder whose manifest was read."""

    def __init__(self, folder: Path, manifest: Manifest, remedy: str) -> None:
        self.folder = folder
        self.remedy = remedy
        self._manifest = manifest

    @property
    def settings(self) -> dict[str, Any]:
        """What the manifest holds."""
        return self._manifest.settings

    @property
    def checksum(self) -> str:
        """Of the manifest, and so of everything that it names."""
        return self._manifest.checksum

    def has(self, name: str) -> bool:
        """Whether a file belongs to the artifact."""
        return name in self._manifest.checksums

    def path(self, name: str) -> Path:
        """A file that belongs to the artifact."""
        if name not in self._manifest.checksums:
            raise MatchloomError(
                f"{self.folder / name} is not among the files that were saved; {self.remedy}", code="damaged"
            )
        return self._where(name)

    def content(self, name: str) -> bytes:
        """The bytes of a small file."""
        content = read_regular(self.path(name), COMPARED, self.remedy)
        if sha256(content) != self._manifest.checksums[name]:
            raise self._altered(name)
        return content

    def inside(self, name: str) -> Any:
        """Load the artifact that was saved inside under this name; None where there is none."""
        home = self._manifest.inside.get(name)
        if home is None:
            return None
        with as_saved(self.folder / home, self.remedy):
            return load_kind(self.folder / home)

    def verify(self, most: int | None = None) -> None:
        """Compare every file with its checksum, but those that have more bytes than `most`."""
        for name, expected in self._manifest.checksums.items():
            path = self._where(name)
            if _size(path, self.remedy) <= (most or math.inf) and _checksum(path, self.remedy) != expected:
                raise self._altered(name)

    def _where(self, name: str) -> Path:
        """Where a file is: under its name, or where a writer that was killed has left it."""
        later = next_of(self.folder, self._manifest.kind, name)
        waits = "/" not in name and os.path.lexists(later)
        if waits and _checksum(later, self.remedy) == self._manifest.checksums[name]:
            return later
        return self.folder / name

    def _altered(self, name: str) -> MatchloomError:
        return MatchloomError(
            f"{self.folder / name} was altered since it was saved, or belongs to another; {self.remedy}",
            code="altered",
        )


def _size(path: Path, remedy: str) -> int:
    with _opened(path, remedy) as stream:
        return os.fstat(stream.fileno()).st_size


def _checksum(path: Path, remedy: str) -> str:
    digest = hashlib.sha256()
    with _opened(path, remedy) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _opened(path: Path, remedy: str) -> BinaryIO:
    """A regular file; a link, a pipe, a device or a folder is refused."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}; {remedy}", code="unreadable") from None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return os.fdopen(file, "rb")
    os.close(file)
    raise MatchloomError(f"{path} is no file; {remedy}", code="damaged")


def open_mapped(folder: Path | str, kind: str, version: int, *, remedy: str) -> Mapped:
    """Read a manifest and compare the files; what is damaged, altered, missing or newer is refused in one line."""
    folder = Path(folder)
    if not is_folder(folder):
        raise MatchloomError(
            f"{folder} is not a folder; expected one with {manifest_name(kind)}; {remedy}", code="missing"
        )
    if not holds(folder, kind):
        raise MatchloomError(f"{folder} has no {manifest_name(kind)}, so it is no {kind}; {remedy}", code="missing")
    found = Mapped(folder, parse(folder, kind, version, remedy=remedy), remedy)
    found.verify(COMPARED)
    return found
