"""The manifest of a folder, `<kind>.json`: what the folder is, and the checksum of every file that belongs to it.

    {"kind": "matcher", "format": 3, "settings": {...},
     "inside": {"system": "system-2"},                           folders of other artifacts, by what they are for
     "checksums": {"vocab.txt": "<SHA-256>", "system-2/words.json": "<SHA-256>"},
     "checksum": "<SHA-256 of all the others>"}

Of an artifact inside, its manifest alone has a checksum here: that manifest has those of its own files. Checksums tell
accidents and mix-ups; who may write the folder may write checksums too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from matchloom.artifact.checks import WRONG, read_regular
from matchloom.types import MatchloomError

_MOST = 100_000_000  # bytes; most manifests have some thousand, and that of a fit holds its report
_NAME = re.compile(r"(?!\.)[^/\\\0]{1,200}")


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """What a manifest holds."""

    kind: str
    format: int
    settings: dict[str, Any]
    checksums: dict[str, str]
    checksum: str
    inside: dict[str, str] = {}

    @property
    def names(self) -> set[str]:
        """The files and folders that belong to the artifact, beside the manifest itself."""
        return {name for name in self.checksums if "/" not in name} | set(self.inside.values())


def manifest_name(kind: str) -> str:
    """The file by which a folder is known to be of this kind."""
    return f"{kind}.json"


def is_name(name: str) -> bool:
    """Whether this may be a file or folder of an artifact: one name, which leads nowhere else."""
    return _NAME.fullmatch(name) is not None


def next_of(folder: Path, kind: str, name: str) -> Path:
    """Where a file is until the manifest that names it is the folder's."""
    return folder / f".{kind}.{name}.next"


def holds(folder: Path | str, kind: str) -> bool:
    """Whether a folder has a manifest of this kind, whole or not; what may not be looked at is refused."""
    try:
        (Path(folder) / manifest_name(kind)).lstat()
    except PermissionError as error:
        raise MatchloomError(
            f"{folder} cannot be read: {error.strerror}; check its permissions", code="unreadable"
        ) from None
    except (OSError, ValueError):
        return False  # a question in the wrong place may be too long to be a name
    return True


def settings_of(folder: Path | str, kind: str) -> dict[str, Any] | None:
    """The settings of an artifact, of whatever format; None where there is none, or its manifest is damaged."""
    try:
        return parse(Path(folder), kind, None, remedy="").settings
    except MatchloomError:
        return None


def parse(folder: Path, kind: str, version: int | None, *, remedy: str) -> Manifest:
    """The manifest of a folder; one that is damaged, altered or of another format is refused in one line."""
    path = folder / manifest_name(kind)
    content = read_regular(path, _MOST, remedy)
    damaged = MatchloomError(f"{path} is damaged or cut off; {remedy}", code="damaged")
    try:
        found = json.loads(content)
        number = found["format"]
        if type(number) is not int:
            raise TypeError
    except WRONG:
        raise damaged from None
    if version is not None and number != version:
        advice = "upgrade matchloom" if number > version else remedy
        raise MatchloomError(
            f"{folder} has format {number}, this matchloom reads format {version}; {advice}", code="wrong_format"
        )
    try:
        manifest = msgspec.convert(found, Manifest)
        own = checksum_of(found)
    except WRONG:  # msgspec's errors are ValueErrors
        raise damaged from None
    if manifest.checksum != own or manifest.kind != kind:
        raise MatchloomError(f"{path} was altered since it was saved; {remedy}", code="altered")
    for name in (*manifest.checksums, *manifest.inside.values()):
        home, _, file = name.rpartition("/")
        if not (is_name(file) and (not home or home in manifest.inside.values())):
            raise MatchloomError(
                f"{path} names {name[:80]!r}, which is no file of this folder; {remedy}", code="damaged"
            )
    return manifest


def dumps(manifest: Mapping[str, Any]) -> bytes:
    """A manifest with its own checksum, which is that of what will be read."""
    plain = json.loads(json.dumps(manifest))
    whole = {**plain, "checksum": checksum_of(plain)}
    return (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode()


def checksum_of(manifest: Mapping[str, Any]) -> str:
    """Of all that a manifest holds but this."""
    others = {key: value for key, value in manifest.items() if key != "checksum"}
    return sha256(json.dumps(others, sort_keys=True).encode())


def sha256(content: bytes) -> str:
    """Of bytes, in hexadecimals."""
    return hashlib.sha256(content).hexdigest()
