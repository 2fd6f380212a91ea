"""An artifact whose files are mapped and not read: a collection of millions opens in the time of its manifest.

Files of up to 256 MB in all are compared with their checksums when the folder is opened, as those of every artifact.
Larger ones are compared by `verify` alone.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

from matchloom.artifact.checks import as_saved, is_folder
from matchloom.artifact.kinds import load_kind
from matchloom.artifact.manifest import Manifest, holds, manifest_name, parse
from matchloom.types import MatchloomError

_COMPARED = 256 * 2**20  # bytes
_BLOCK = 2**20


class Mapped:
    """A folder whose manifest was read."""

    def __init__(self, folder: Path, manifest: Manifest, remedy: str) -> None:
        self.folder, self.remedy, self._manifest = folder, remedy, manifest

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
        return self.folder / name

    def inside(self, name: str) -> Any:
        """Load the artifact that was saved inside under this name; None where there is none."""
        home = self._manifest.inside.get(name)
        if home is None:
            return None
        with as_saved(self.folder / home, self.remedy):
            return load_kind(self.folder / home)

    def verify(self, most: int | None = None) -> None:
        """Compare every file with its checksum, unless they have more bytes than `most` together."""
        sizes = {name: self._size(self.folder / name) for name in self._manifest.checksums}
        if most is not None and sum(sizes.values()) > most:
            return
        for name, expected in self._manifest.checksums.items():
            digest = hashlib.sha256()
            with (self.folder / name).open("rb") as stream:
                while block := stream.read(_BLOCK):
                    digest.update(block)
            if digest.hexdigest() != expected:
                raise MatchloomError(
                    f"{self.folder / name} was altered since it was saved, or belongs to another; {self.remedy}",
                    code="altered",
                )

    def _size(self, path: Path) -> int:
        try:
            found = os.lstat(path)
        except OSError as error:
            raise MatchloomError(
                f"{path} cannot be read: {error.strerror or error}; {self.remedy}", code="unreadable"
            ) from None
        if not stat.S_ISREG(found.st_mode):
            raise MatchloomError(f"{path} is no file; {self.remedy}", code="damaged")
        return found.st_size


def open_mapped(folder: Path | str, kind: str, version: int, *, remedy: str) -> Mapped:
    """Read a manifest and compare the files; what is damaged, altered, missing or newer is refused in one line."""
    folder = Path(folder)
    if not is_folder(folder):
        raise MatchloomError(f"{folder} is not a folder; expected one with {manifest_name(kind)}; {remedy}")
    if not holds(folder, kind):
        raise MatchloomError(f"{folder} has no {manifest_name(kind)}, so it is no whole {kind}; {remedy}")
    found = Mapped(folder, parse(folder, kind, version, remedy=remedy), remedy)
    found.verify(_COMPARED)
    return found
