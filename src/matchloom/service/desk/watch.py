"""`serve --watch FILE`: when the file has changed and come to rest, the collection follows it, if it is not worse."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from pathlib import Path

from matchloom.search.source import file_digest, last_seen
from matchloom.service.logs import say
from matchloom.service.problems import Refused
from matchloom.service.refits import Order, Refits
from matchloom.service.systems import Shelf
from matchloom.types import MatchloomError

_LOOK, _REST = 1.0, 1.0  # seconds between two looks, and that a file must have been left alone


class FileWatch:
    """Looks at a file for the first collection that is served."""

    def __init__(self, path: Path, shelf: Shelf, refits: Refits) -> None:
        self.path = path
        self._shelf = shelf
        self._refits = refits
        self._seen: tuple[int, int] | None = None
        self._since = 0.0
        self._told = ""

    async def watch(self) -> None:
        """Look until the service ends."""
        while True:
            try:
                await asyncio.to_thread(self.look)
            except Exception as error:  # whatever a file does, it is looked at again
                self._tell(f"{self.path} cannot be followed: {type(error).__name__}: {error}")
            await asyncio.sleep(_LOOK)

    def look(self) -> bool:
        """Follow the file if it is another than it was; whether that was begun."""
        system = next((one for one in self._shelf.systems.values() if one.collection is not None), None)
        try:
            found = self.path.stat()
        except OSError as error:
            self._tell(f"{self.path} cannot be read: {error.strerror or error}")
            return False
        now, seen = time.monotonic(), (found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            self._seen, self._since = seen, now
            return False
        if system is None or self._since < 0 or now - self._since < _REST:
            return False
        with suppress(Refused):  # a refit goes on; the next look comes soon
            try:
                if file_digest(self.path) != last_seen(system.path):
                    self._refits.begin(system, Order(source=self.path.resolve(), who="watch"))
                self._since = -1.0  # looked at as it is
                return True
            except MatchloomError as error:
                self._since = -1.0  # nor is it another soon
                self._tell(str(error))
        return False

    def _tell(self, why: str) -> None:
        if why != self._told:
            self._told = why
            say("watched file", level=logging.WARNING, why=why)
