"""The table of an archive as it is now, without opening it for every search."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from matchloom.search.lance.table import Store


class Newest:
    """The newest version of a table, opened again only when there is another one.

    A new version is a new file in the table's folder of versions, which changes that folder's time. A time counts for
    something once it is a second old: clocks of file systems tick, and two versions may fall into one tick.
    """

    def __init__(self, database: Any, folder: Path) -> None:
        self._database, self._folder = database, folder
        self._opened: tuple[int, Store] | None = None  # in one place: several threads may search

    def forget(self) -> None:
        """Nothing: the folder tells what has changed."""

    def store(self, name: str) -> Store:
        """The table of this name as it is now."""
        try:
            changed = (self._folder / f"{name}.lance" / "_versions").stat().st_mtime_ns
        except OSError:  # LanceDB says what is wrong
            changed = time.time_ns()
        opened = self._opened
        if opened is not None and opened[0] == changed and opened[1].name == name:
            return opened[1]
        settled = time.time_ns() - changed > 1_000_000_000
        store = Store.open(self._database, self._folder, name)
        self._opened = (changed, store) if settled else None
        return store


class Polled:
    """The newest version of a table of an object store, asked for again after some seconds, or after an own write."""

    def __init__(self, database: Any, where: str | Path, seconds: float) -> None:
        self._database, self._where, self._seconds = database, where, seconds
        self._opened: tuple[float, Store] | None = None  # in one place: several threads may search

    def forget(self) -> None:
        """Ask again: this process has written."""
        self._opened = None

    def store(self, name: str) -> Store:
        """The table of this name as it was so many seconds ago at most."""
        now, opened = time.monotonic(), self._opened
        if opened is not None and now - opened[0] < self._seconds and opened[1].name == name:
            return opened[1]
        store = Store.open(self._database, self._where, name)
        self._opened = (now, store)
        return store
