"""Messages over pipes, one a line: a line that is too long is refused in one answer, and the next one is read."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PIECE = 1 << 16
_ENDS = 400  # bytes of each end of a line in which its id may stand
_ID = rb'"id"\s*:\s*(-?[0-9]{1,18}|"[A-Za-z0-9._:-]{1,100}")'
_FIRST = re.compile(rb'\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*' + _ID + rb"\s*,")
_LAST = re.compile(rb",\s*" + _ID + rb"\s*\}\s*\Z")  # two braces would end something inside


class BoundedLines(io.RawIOBase):
    """What comes over a pipe, with each line that is longer than it may be as a short one that will be refused.

    Args:
        file: The descriptor of the pipe.
        most: Bytes that a line may have.
    """

    def __init__(self, file: int, most: int) -> None:
        self._file, self._most = file, most
        self._ready = bytearray()  # whole lines, or the last one without its end
        self._line = bytearray()  # the beginning of one
        self._last = b""  # the end of a line that is too long
        self._ended = False

    def readable(self) -> bool:
        """It is read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes of lines; none at the end."""
        while not self._ready and not self._ended:
            self._take(os.read(self._file, _PIECE))
        some = self._ready[: len(buffer)]
        del self._ready[: len(some)]
        buffer[: len(some)] = some
        return len(some)

    def _take(self, piece: bytes) -> None:
        self._ended = not piece
        for part in _lines(piece):
            self._line += part[: max(0, self._most + 1 - len(self._line))]
            if len(self._line) > self._most:
                self._last = (self._last + part)[-_ENDS:]
            if part.endswith(b"\n"):
                self._end()
        if self._ended:
            self._end()

    def _end(self) -> None:
        line, last = bytes(self._line), self._last
        self._line.clear()
        self._last = b""
        self._ready += line if len(line) <= self._most else self._refused(line, last)

    def _refused(self, line: bytes, last: bytes) -> bytes:
        """A request for something that is not there, whose name says why; of a line without an id nothing is left."""
        why = f"a line may have {self._most:,} bytes, and this one had more"
        print(f"matchloom: warning: {why}; it was passed over", file=sys.stderr, flush=True)
        found = _FIRST.match(line) or _LAST.search(last.rstrip())
        if found is None:
            return b"\n"
        return json.dumps({"jsonrpc": "2.0", "id": json.loads(found[1]), "method": why}).encode() + b"\n"


def _lines(piece: bytes) -> Iterator[bytes]:
    """Lines end with a line feed alone."""
    parts = piece.split(b"\n")
    yield from (part + b"\n" for part in parts[:-1])
    yield from (part for part in parts[-1:] if part)


@contextmanager
def bounded_input(most: int) -> Iterator[None]:
    """Standard input as lines of so many bytes at most; whoever is started meanwhile has none.

    Args:
        most: Bytes that a line may have.
    """
    before, own = sys.stdin, os.dup(0)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(BoundedLines(own, most)), encoding="utf-8", errors="replace")
    try:
        yield
    finally:
        os.dup2(own, 0)
        os.close(own)
        sys.stdin = before
