"""What was asked, where its owner wants it kept: a file of bounded size, which can be deleted at any time.

    {"time": ..., "system": ..., "question": ..., "id": ..., "probability": ..., "known": ..., "confident": true}

Lines are written together, a moment later, so that no search waits for the disk; where they come faster than they can
be written some are left out and counted. Two full files are kept beside it (FILE.1, FILE.2).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matchloom.basics.growing import GrowingFile
from matchloom.service.logs import say
from matchloom.types import Hits, MatchloomError

_MOST, _KEEP = 2**23, 2  # bytes of a file, full files beside it
_PAUSE, _HELD = 0.5, 10_000  # seconds between two writes, lines that wait
_LONGEST = 500  # characters of a question


class AskedQuestion(msgspec.Struct):
    """A line."""

    time: float
    system: str
    question: str
    id: str | None = None
    probability: float | None = None
    known: float | None = None
    confident: bool | None = None


class Asked(NamedTuple):
    """Lines, and how many could not be read."""

    questions: list[AskedQuestion]
    damaged: int


class QuestionLog:
    """The file, and a thread that writes it."""

    def __init__(self, path: Path) -> None:
        self.file: GrowingFile = GrowingFile(path, "question", most=_MOST, keep=_KEEP)
        self._waiting: deque[dict[str, Any]] = deque()
        self._dropped = 0
        self._woken, self._ended = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def keep(self, system: str, question: str, hits: Hits) -> None:
        """Take a question down; nothing here waits."""
        if len(self._waiting) >= _HELD:
            self._dropped += 1
            return
        first = hits[0] if hits else None
        self._waiting.append(
            {
                "time": round(time.time(), 3),
                "system": system,
                "question": question[:_LONGEST],
                "id": None if first is None else first.id,
                "probability": None if first is None or first.probability is None else round(first.probability, 4),
                "known": None if hits.known is None else round(hits.known, 4),
                "confident": hits.confident,
            }
        )
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="matchloom-questions", daemon=True)
            self._thread.start()
        self._woken.set()

    def _write(self) -> None:
        while not self._ended.is_set():
            self._woken.wait()
            self._woken.clear()
            self.flush()
            self._ended.wait(_PAUSE)

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            rows = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not rows:
                return
            try:
                self.file.append(*rows, durable=False)
            except MatchloomError as error:
                self._dropped += len(rows)
                say("questions not kept", level=logging.WARNING, why=str(error), count=self._dropped)

    def close(self) -> None:
        """Write what waits, and end."""
        self._ended.set()
        self._woken.set()
        self.flush()

    def read(self, system: str) -> Asked:
        """What was asked of a system, the oldest first."""
        self.flush()
        found, damaged = [], 0
        for content in self._lines():
            try:
                line = msgspec.json.decode(content, type=AskedQuestion)
            except (ValueError, RecursionError):
                damaged += 1
                continue
            if line.system == system and line.question.strip():
                found.append(line)
        return Asked(found, damaged)

    def _lines(self) -> Iterator[bytes]:
        for path in (*reversed(self.file.aside), self.file.path):
            try:
                for line in GrowingFile(path, "question", most=_MOST).lines():
                    yield line.content
            except MatchloomError:
                continue  # moved aside or deleted meanwhile

    def delete(self) -> None:
        """Forget everything that was asked."""
        with self._lock:
            self._waiting.clear()
            self.file.delete()
