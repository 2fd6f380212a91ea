"""Thumbs up and down, kept as a pairs file: a line of JSON each, on the disk before it is confirmed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from matchloom.types import MatchloomError


class Feedback:
    """A file that grows by one line for each thumb. `matchloom fit faq.tsv FILE` learns from it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keep(self, line: dict[str, Any]) -> None:
        """Append one line, whole: a single write, which the system does not mix with another's."""
        whole = (json.dumps(line, ensure_ascii=False) + "\n").encode(errors="replace")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            file = os.open(self.path, flags, 0o600)
            try:
                if os.write(file, whole) != len(whole):
                    raise OSError(0, "the disk is full")
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise MatchloomError(f"{self.path} was not written: {error.strerror or error}", code="unwritable") from None
