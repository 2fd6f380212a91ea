"""Files that only grow: one line of JSON for each event, on the disk before it is confirmed. Several may write.

A last line without an end is what a killed writer or a full disk left: readers pass over it, and the next writer
removes it. A full file is refused, or moved aside as FILE.1, FILE.2 and so on where its owner wants only the latest.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from matchloom.types import MatchloomError

LONGEST = 2**20  # bytes of a line
# Told, before it is written, what will stand where: the file, where it begins, the bytes, and more about it.
Announce = Callable[[Path | None, int, bytes, Mapping[str, Any]], None]
_WAIT, _POLL = 5.0, 0.005  # seconds for another writer, who needs milliseconds


class Line(NamedTuple):
    """A line as the file has it: where it begins, its number, its bytes."""

    start: int
    number: int
    content: bytes


class GrowingFile:
    """A file of lines.

    Args:
        path: Where; it is made with the first line.
        what: What a line is, for messages, such as "judgement".
        most: Bytes that the file may have.
        keep: How many full files are kept beside it; None: a full file is refused.
        whole: Whether a line without an end is one that an editor left, and not a piece of one.
    """

    def __init__(
        self,
        path: Path | str,
        what: str,
        *,
        most: int,
        keep: int | None = None,
        whole: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.path: Path = Path(path)
        self._what = what
        self._most = most
        self._keep = keep
        self._whole = whole or _is_object

    def append(self, *rows: Mapping[str, Any], durable: bool = True, announce: Announce | None = None) -> int:
        """Append lines, all of them: they are on the disk when this returns, or the file is as it was.

        Returns where the first one begins. Without `durable` the system may still hold them back for some seconds.
        `announce` is called before they are written.
        """
        lines = [json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n" for row in rows]
        longest = max(map(len, lines), default=0)
        if longest > LONGEST:
            raise MatchloomError(
                f"a {self._what} has {longest:,} bytes; at most {LONGEST:,} are kept", code="too_large"
            )
        with self._held() as file:
            return self._append(file, b"".join(lines), durable, announce)

    @contextmanager
    def _held(self) -> Iterator[int]:
        try:
            file = self._locked()
            try:
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise MatchloomError(f"{self.path} was not written: {error.strerror or error}", code="unwritable") from None

    def _append(self, file: int, content: bytes, durable: bool, announce: Announce | None) -> int:
        size = self._mended(file)
        if size + len(content) > self._most and size:
            if self._keep is None:
                raise self._full()
            self._move_aside()
            with self._held() as other:
                return self._append(other, content, durable, announce)
        if announce is not None:
            announce(self.path, size, content, {})
        try:
            if os.write(file, content) != len(content):
                raise OSError(0, "the disk is full")
            if durable:
                os.fsync(file)
        except OSError:
            os.ftruncate(file, size)  # no half of a line, and none that was not confirmed
            raise
        return size

    def take_back(self, start: int, size: int) -> bool:
        """Remove the lines that were appended last, if nobody appended any since; whether that was done."""
        with self._held() as file:
            last = os.fstat(file).st_size == start + size
            if last:
                os.ftruncate(file, start)
            return last

    def _move_aside(self) -> None:
        """FILE becomes FILE.1, FILE.1 becomes FILE.2; the last one goes."""
        names = [self.path, *self.aside]
        for old, new in reversed(list(pairwise(names))):
            if old.exists():
                old.replace(new)
        if len(names) == 1:
            self.path.unlink(missing_ok=True)

    @property
    def aside(self) -> list[Path]:
        """The full files, the latest first, whether they are there or not."""
        return [self.path.with_name(f"{self.path.name}.{n + 1}") for n in range(self._keep or 0)]

    def lines(self, start: int = 0, number: int = 0) -> Iterator[Line]:
        """The lines from a place on; nothing where there is no file. A last line without an end is passed over."""
        try:
            file = open_regular(self.path, os.O_RDONLY, self._what)
        except MatchloomError:
            if self.path.exists() or self.path.is_symlink():
                raise
            return
        with os.fdopen(file, "rb") as stream:
            stream.seek(start)
            while line := stream.readline(LONGEST + 1):
                number += 1
                if not line.endswith(b"\n") and len(line) <= LONGEST and not self._whole(line):
                    return  # a writer was killed, or is writing now
                yield Line(start, number, line)
                start += len(line)
                while len(line) > LONGEST and not line.endswith(b"\n"):
                    line = stream.readline(LONGEST + 1)
                    start += len(line)

    def check_size(self) -> None:
        """Refuse a file that is larger than any that is written here."""
        try:
            if self.path.stat().st_size > self._most:
                raise self._full()
        except OSError:
            return

    def _full(self) -> MatchloomError:
        return MatchloomError(
            f"{self.path} has more than {self._most:,} bytes of {self._what}s; use it, then move it away",
            code="too_large",
        )

    def delete(self) -> None:
        """Remove it, and what was moved aside."""
        try:
            for path in (self.path, *self.aside):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise MatchloomError(f"{self.path} was not removed: {error.strerror or error}", code="unwritable") from None

    def _locked(self) -> int:
        """The file, held by nobody else; one that was moved away meanwhile is let go."""
        end = time.monotonic() + _WAIT
        while True:
            file = open_regular(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, self._what)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(file), self.path.stat(follow_symlinks=False)):
                    return file
            except (BlockingIOError, FileNotFoundError):
                pass
            except OSError:
                return file  # a file system without locks: a single write must do
            os.close(file)
            if time.monotonic() > end:
                raise MatchloomError(f"{self.path} is being written by another; try again", code="busy")
            time.sleep(_POLL)

    def _mended(self, file: int) -> int:
        """The size after a last line without an end was removed; one that is whole, as editors leave it, is ended."""
        size = os.fstat(file).st_size
        tail = os.pread(file, LONGEST, max(0, size - LONGEST))
        if not tail or tail.endswith(b"\n"):
            return size
        last = tail[tail.rfind(b"\n") + 1 :]
        if len(last) == LONGEST:
            raise MatchloomError(f"{self.path} ends in no {self._what}; move it away", code="damaged")
        if self._whole(last):
            os.write(file, b"\n")
            return size + 1
        os.ftruncate(file, size - len(last))
        return size - len(last)


def open_regular(path: Path, how: int, what: str) -> int:
    """A regular file; a pipe in its place is refused, and a link where it would be written."""
    reads = how == os.O_RDONLY
    try:
        file = os.open(path, how | os.O_CLOEXEC | os.O_NONBLOCK | (0 if reads else os.O_NOFOLLOW), 0o600)
    except OSError as error:
        if not reads:
            raise
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}", code="unreadable") from None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise MatchloomError(f"{path} is no file; expected one of {what}s", code="wrong_type")


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
