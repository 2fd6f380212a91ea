"""Thumbs up and down, kept as a pairs file: a line of JSON each, on the disk before it is confirmed."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from matchloom.types import MatchloomError


class Feedback:
    """A file that grows by one line for each thumb. `matchloom fit faq.tsv FILE` learns from it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keep(self, line: dict[str, Any]) -> None:
        """Append one line, whole, while no other process does; what a killed one left half is ended."""
        whole = (json.dumps(line, ensure_ascii=False) + "\n").encode(errors="replace")
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            file = os.open(self.path, flags, 0o600)
            try:
                with suppress(OSError):  # a file system without locks: one write is whole there, too
                    fcntl.flock(file, fcntl.LOCK_EX)
                size = os.fstat(file).st_size
                if size and os.pread(file, 1, size - 1) != b"\n":
                    whole = b"\n" + whole
                if os.write(file, whole) != len(whole):
                    os.ftruncate(file, size)
                    raise OSError(0, "the disk is full")
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise MatchloomError(f"{self.path} was not written: {error.strerror or error}", code="unwritable") from None
