"""The changes of a collection since it was fitted: a file that is only appended to.

Each line is one change that is there whole or not at all: a checksum and JSON. A checksum covers the line and the
checksum before it, so that a line that was altered, left out or exchanged is found. A line without an end is what a
killed writer left: readers pass over it, and the next writer removes it. A change is on the disk before it is
confirmed.

    <checksum> {"put": [{"id": ..., "text": ..., "questions": [...], "columns": {...}}], "remove": ["id", ...]}
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matchloom.data.entries import Entry
from matchloom.types import MatchloomError

_DIGITS = 32  # of a checksum


class Change(NamedTuple):
    """Entries that are new or changed, each as it is from now on, and ids of those that are gone."""

    put: Sequence[Entry] = ()
    remove: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """As the file has it."""
        put = [{**one._asdict(), "questions": list(one.questions), "columns": dict(one.columns)} for one in self.put]
        return {"put": put, "remove": list(self.remove)}


class _Put(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    text: str
    questions: list[str]
    columns: dict[str, str]


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    put: list[_Put]
    remove: list[str]


class Journal:
    """Such a file, as far as it was read. `seed` is what the first line follows: the checksum of what was fitted."""

    def __init__(self, path: Path, seed: str) -> None:
        self.path = path
        self._last, self._size = seed, 0

    def changed(self) -> bool:
        """Whether there may be more to read."""
        try:
            return self.path.stat().st_size != self._size
        except FileNotFoundError:
            return True

    def read(self) -> list[Change]:
        """The changes that came since the last time."""
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise MatchloomError(
                f"{self.path} cannot be read: {error.strerror or error}; copy the collection again", code="unreadable"
            ) from None
        with os.fdopen(file, "rb") as stream:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise MatchloomError(f"{self.path} is no file; copy the collection again", code="damaged")
            stream.seek(self._size)
            lines = stream.read().split(b"\n")
        return [self._change(line) for line in lines[:-1]]

    def _change(self, line: bytes) -> Change:
        checksum, _, content = line.partition(b" ")
        expected = _checksum(self._last, content)
        try:
            if checksum.decode("ascii") != expected:
                raise ValueError("another checksum")
            found = msgspec.json.decode(content, type=_Line)
        except ValueError:
            raise MatchloomError(
                f"{self.path} was altered or is damaged at byte {self._size:,}; copy the collection again, or remove "
                "that line and what follows it",
                code="altered",
            ) from None
        self._last, self._size = expected, self._size + len(line) + 1
        put = [Entry(one.id, one.text, tuple(one.questions), one.columns) for one in found.put]
        return Change(put, found.remove)

    def append(self, changes: Iterable[Change]) -> None:
        """Write changes behind what was read; all of them are on the disk, or none. The caller holds the lock."""
        last, content = self._last, b""
        for change in changes:
            plain = json.dumps(change.to_json(), ensure_ascii=False, separators=(",", ":")).encode()
            last = _checksum(last, plain)
            content += last.encode() + b" " + plain + b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = -1
        try:
            file = os.open(self.path, flags, 0o666)
            os.ftruncate(file, self._size)  # what a killed writer left
            _write(file, content, self._size)
            os.fsync(file)
        except OSError as error:
            if file >= 0:
                os.ftruncate(file, self._size)  # a full disk leaves no half of a line
            raise MatchloomError(
                f"{self.path} cannot be written: {error.strerror or error}; nothing was changed", code="unwritable"
            ) from None
        finally:
            if file >= 0:
                os.close(file)
        self._last, self._size = last, self._size + len(content)


def _write(file: int, content: bytes, offset: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(file, view, offset)
        view, offset = view[written:], offset + written


def _checksum(last: str, content: bytes) -> str:
    return hashlib.sha256(last.encode() + content).hexdigest()[:_DIGITS]
