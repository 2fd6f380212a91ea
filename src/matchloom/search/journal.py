"""The changes of a collection since it was fitted: a file that is only appended to.

Each line is one change that is there whole or not at all: a checksum and JSON. A checksum covers the line and the
checksum before it, so that a line that was altered, left out or exchanged is found. A line without an end is what a
killed writer left: readers pass over it, and the next writer removes it. A change is on the disk before it is
confirmed.

A small file beside it has the size of the journal when a change was last confirmed, so that a journal that was cut at
the end of a line is found to be shorter. It is written after the journal, and read before it: what it says is never
ahead. It does not wait for the disk; after a power cut it may say less than there is, which proves less and does no
harm. Where it is missing, as beside journals of earlier versions, such a cut cannot be seen.

    <checksum> {"put": [{"id": ..., "text": ..., "questions": [...], "columns": {...}}], "remove": ["id", ...]}
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from matchloom.data.entries import Entry
from matchloom.types import MatchloomError

_DIGITS = 32  # of a checksum
_TORN = re.compile(rb"[0-9a-f]{0,32}|[0-9a-f]{32} (\{.*)?", re.DOTALL)
_MOST = 8 * 2**30  # bytes that are read at a time
_CONFIRMED = re.compile(rb"([0-9]{20}) [0-9a-f]{32}\n")


_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # no link, and no waiting for a pipe
_READ = os.O_RDONLY | _PLAIN


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
        self.confirmed: Path = path.with_suffix(".confirmed")
        self._last, self._size = seed, 0

    @property
    def size(self) -> int:
        """How many bytes were read, or written."""
        return self._size

    @property
    def confirmation(self) -> bytes:
        """What the file beside it says when a change that ends there was confirmed."""
        return f"{self._size:020} {self._last[:_DIGITS]:0>{_DIGITS}}\n".encode()

    def changed(self, since: int | None = None) -> bool:
        """Whether there may be more to read, or more than there was when so many bytes were read."""
        try:
            return self.path.stat().st_size != (self._size if since is None else since)
        except FileNotFoundError:
            return True

    def read(self) -> list[Change]:
        """The changes that came since the last time: all of them, or none where one is damaged or missing."""
        confirmed = self._confirmed_size()
        try:
            file = os.open(self.path, _READ)
        except OSError as error:
            raise MatchloomError(
                f"{self.path} cannot be read: {error.strerror or error}; copy the collection again", code="unreadable"
            ) from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise MatchloomError(f"{self.path} is no file; copy the collection again", code="damaged")
        with os.fdopen(file, "rb") as stream:
            return self._read(stream, confirmed)

    def remove(self) -> None:
        """Remove the file and what is beside it."""
        for path in (self.confirmed, self.path):
            path.unlink(missing_ok=True)

    def _confirmed_size(self) -> int:
        """The size of the journal when a change was last confirmed; 0 where that is not known."""
        try:
            file = os.open(self.confirmed, _READ)
        except OSError:
            return 0
        try:
            found = _CONFIRMED.match(os.read(file, 64)) if stat.S_ISREG(os.fstat(file).st_mode) else None
        except OSError:
            return 0
        finally:
            os.close(file)
        return 0 if found is None else int(found[1])

    def _confirm(self) -> None:
        """Keep the size; where that cannot be written, the change is there all the same."""
        with suppress(OSError):
            file = os.open(self.confirmed, os.O_WRONLY | os.O_CREAT | _PLAIN, 0o666)
            try:
                if stat.S_ISREG(os.fstat(file).st_mode):
                    os.pwrite(file, self.confirmation, 0)
            finally:
                os.close(file)

    def _read(self, stream: BinaryIO, confirmed: int) -> list[Change]:
        changes, last, size = [], self._last, self._size
        if not size <= os.fstat(stream.fileno()).st_size <= size + _MOST:
            raise self._altered(size)
        stream.seek(size)
        for line in stream:
            if not line.endswith(b"\n"):
                self._check_torn(line, last, size)
                break
            last, change = self._change(line[:-1], last, size)
            size += len(line)
            changes.append(change)
        if size < confirmed:
            raise MatchloomError(
                f"{self.path} was cut at byte {size:,}: changes up to byte {confirmed:,} were confirmed; copy the "
                f"collection again, or remove {self.confirmed.name} to go on without the missing ones",
                code="altered",
            )
        self._last, self._size = last, size
        return changes

    def _change(self, line: bytes, last: str, at: int) -> tuple[str, Change]:
        """The change of a line, and its checksum."""
        checksum, _, content = line.partition(b" ")
        expected = _checksum(last, content)
        if checksum != expected.encode():
            raise self._altered(at)
        try:
            found = msgspec.json.decode(content, type=_Line)
        except ValueError:
            raise self._altered(at) from None
        put = [Entry(one.id, one.text, tuple(one.questions), one.columns) for one in found.put]
        return expected, Change(put, found.remove)

    def _check_torn(self, line: bytes, last: str, at: int) -> None:
        """A line without an end is the beginning of one: a writer was killed, or is writing now. All else is damage."""
        checksum, _, content = line.partition(b" ")
        if not _TORN.fullmatch(line.rstrip(b"\0")) or checksum == _checksum(last, content[:-1]).encode():
            raise self._altered(at)

    def _altered(self, at: int) -> MatchloomError:
        return MatchloomError(
            f"{self.path} was altered or is damaged at byte {at:,}; copy the collection again, or remove that line "
            f"and what follows it, and {self.confirmed.name}",
            code="altered",
        )

    def append(self, changes: Iterable[Change], announce: Callable[[Path, int, bytes], None] | None = None) -> None:
        """Write changes behind what was read; all of them are on the disk, or none. The caller holds the lock.

        `announce` is called before they are written.
        """
        last, content = self._last, b""
        for change in changes:
            plain = json.dumps(change.to_json(), ensure_ascii=False, separators=(",", ":")).encode()
            last = _checksum(last, plain)
            content += last.encode() + b" " + plain + b"\n"
        file = -1
        try:
            file = self._open()
            os.ftruncate(file, self._size)  # what a killed writer left
            if announce is not None:
                announce(self.path, self._size, content)
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
        self._confirm()

    def _open(self) -> int:
        """The file, to be written; a pipe or a link in its place is refused, and what is shorter than was read."""
        new = 0 if self._size else os.O_CREAT
        file = os.open(self.path, os.O_WRONLY | _PLAIN | new, 0o666)
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode) and found.st_size >= self._size:
            return file
        os.close(file)
        raise self._altered(found.st_size)


def _write(file: int, content: bytes, offset: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(file, view, offset)
        view, offset = view[written:], offset + written


def _checksum(last: str, content: bytes) -> str:
    return hashlib.sha256(last.encode() + content).hexdigest()[:_DIGITS]
