"""An artifact that is read: every file is what was written, or the folder is refused."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from matchloom.artifact.checks import as_saved, is_folder, read_regular
from matchloom.artifact.kinds import kind_of, load_kind
from matchloom.artifact.lock import is_written
from matchloom.artifact.manifest import holds, manifest_name, next_of, parse, sha256
from matchloom.artifact.tensors import not_finite, unpacked
from matchloom.types import MatchloomError

_MOST = 4 * 2**30  # bytes of a file
_TRIES, _PAUSE = 5, 0.02  # while it is replaced; seconds


class Saved:
    """What was read, and found to be what was written."""

    def __init__(
        self, folder: Path, remedy: str, settings: dict[str, Any], contents: dict[str, bytes], inside: dict[str, Path]
    ) -> None:
        self.folder: Path = folder
        self.remedy: str = remedy
        self.settings: dict[str, Any] = settings
        self._contents, self._inside = contents, inside

    def __contains__(self, name: str) -> bool:
        return name in self._contents

    def content(self, name: str) -> bytes:
        """The bytes of a file."""
        if name not in self._contents:
            raise MatchloomError(
                f"{self.folder / name} is not among the files that were saved; {self.remedy}", code="damaged"
            )
        return self._contents[name]

    def tensors(self, name: str, framework: Literal["np", "pt"] = "np", *, finite: bool = False) -> dict[str, Any]:
        """The arrays, or torch tensors, of a safetensors file; with `finite` those with NaN or infinity are refused."""
        content, path = self.content(name), self.folder / name
        with as_saved(path, self.remedy):
            found = unpacked(content, framework)
        odd = not_finite(found) if finite else None
        if odd is not None:
            raise MatchloomError(f"{path} holds numbers that are not finite, in {odd!r}; {self.remedy}", code="damaged")
        return found

    def inside(self, name: str) -> Any:
        """Load the artifact that was saved inside under this name."""
        if name not in self._inside:
            raise MatchloomError(
                f"{self.folder} has nothing inside that is named {name!r}; {self.remedy}", code="damaged"
            )
        folder = self._inside[name]
        with as_saved(folder, self.remedy):
            return load_kind(folder)


def read(folder: Path | str, kind: str, version: int, *, remedy: str) -> Saved:
    """Read all files of an artifact: what is damaged, altered, exchanged, missing or newer is refused in one line.

    Args:
        folder: Where.
        kind: What it must be.
        version: The format that is read; others are refused.
        remedy: What to do about a refusal, such as "train the matcher again"; it ends the line.
    """
    folder = Path(folder)
    if not is_folder(folder):
        raise MatchloomError(
            f"{folder} is not a folder; expected one with {manifest_name(kind)}; {remedy}", code="missing"
        )
    if not holds(folder, kind):
        raise MatchloomError(f"{folder} has no {manifest_name(kind)}, so it is no {kind}; {remedy}", code="missing")
    for _ in range(_TRIES):
        before = _stamp(folder, kind)
        try:
            return _read(folder, kind, version, remedy)
        except MatchloomError:
            if _stamp(folder, kind) == before and not is_written(folder):
                raise
        time.sleep(_PAUSE)  # it was replaced meanwhile, or may be now: the next one is whole
    return _read(folder, kind, version, remedy)


def _read(folder: Path, kind: str, version: int, remedy: str) -> Saved:
    manifest = parse(folder, kind, version, remedy=remedy)
    altered, contents = "was altered since it was saved, or belongs to another", {}
    for home in manifest.inside.values():
        if not is_folder(folder / home, follow=False):
            raise MatchloomError(f"{folder / home} is no folder; {remedy}", code="damaged")
        if f"{home}/{manifest_name(kind_of(folder / home) or '')}" not in manifest.checksums:
            raise MatchloomError(f"{folder / home} {altered}; {remedy}", code="altered")
    for name, expected in manifest.checksums.items():
        later = next_of(folder, kind, name)
        path = later if "/" not in name and is_next(later, expected) else folder / name
        content = read_regular(path, _MOST, remedy)
        if sha256(content) != expected:
            raise MatchloomError(f"{folder / name} {altered}; {remedy}", code="altered")
        contents[name] = content
    inside = {name: folder / home for name, home in manifest.inside.items()}
    return Saved(folder, remedy, manifest.settings, contents, inside)


def is_next(path: Path, checksum: str) -> bool:
    """Whether a file still waits for its name, as it does where a writer was killed, and is this one."""
    if not os.path.lexists(path):
        return False
    with suppress(MatchloomError):
        return sha256(read_regular(path, _MOST, "")) == checksum
    return False


def _stamp(folder: Path, kind: str) -> tuple[int, int, int]:
    """What changes when another manifest takes the name."""
    try:
        found = (folder / manifest_name(kind)).lstat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)
