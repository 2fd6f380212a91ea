"""A small collection, and stores that fail as real ones do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from matchloom import Collection
from matchloom.basics.stores import FolderStore
from matchloom.types import MatchloomError

PAIRS = [
    ("how do I weave?", "Use a loom."),
    ("how do I grind corn?", "Use a mill."),
    ("how do I cut wood?", "Use a saw."),
]


def make_collection(folder: Path) -> Collection:
    return Collection.create(folder, PAIRS)


class Failing(FolderStore):
    """A store whose connection is lost in the middle of writing some file, or which answers every read in error."""

    def __init__(self, folder: Path, *, writing: str | None = None, reading: bool = False) -> None:
        super().__init__(folder, f"file://{folder}")
        self.writing, self.reading = writing, reading

    def put(self, name: str, pieces: Iterator[bytes]) -> None:
        if self.writing is not None and name.startswith(self.writing):
            raise MatchloomError(f"{self.uri}/{name} cannot be written: connection lost", code="unwritable")
        super().put(name, pieces)

    def read(self, name: str, most: int) -> bytes | None:
        if self.reading:
            raise MatchloomError(f"{self.uri}/{name} cannot be read: 503 slow down", code="unreadable")
        return super().read(name, most)
