"""Room for the bytes of requests and answers: a bounded number of large ones, and no client takes it all.

What is small is never counted: connections are bounded, and so is their sum. A body that has not arrived whole gives
way to a newer one, the oldest first: who sends half a request and waits keeps nobody out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextvars import ContextVar

SMALL = 16_384  # bytes of a request or an answer that need no room
CLIENT: ContextVar[str] = ContextVar("client", default="")  # who asks: by its key, or its address


class Held:
    """What one request takes of the room."""

    def __init__(self, room: Room, client: str) -> None:
        self._room = room
        self.client = client
        self.size: int = 0
        self.arriving: asyncio.Timeout | None = None  # while its body is awaited
        self.gave_way: bool = False

    def grow(self, more: int) -> bool:
        """Take so many bytes more; False where there is no room, and nothing was taken."""
        before, self.size = self.size, self.size + more
        if self._room.take(self, max(0, self.size - SMALL) - max(0, before - SMALL)):
            return True
        self.size = before
        return False

    def give_way(self) -> None:
        """Its body is awaited no longer."""
        assert self.arriving is not None
        self.gave_way = True
        timeout = self.arriving
        self.arriving = None
        timeout.reschedule(asyncio.get_running_loop().time())
        self.leave()

    def leave(self) -> None:
        """Give back everything."""
        self._room.give(self, max(0, self.size - SMALL))
        self.size = 0


class Room:
    """So many bytes, of which one client may have half."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._of: Counter[str] = Counter()
        self._large: dict[Held, None] = {}  # the oldest first

    @property
    def taken(self) -> int:
        """Bytes that are held now."""
        return self._taken

    def take(self, held: Held, size: int) -> bool:
        """Take room, if need be of bodies that have not arrived."""
        if not size:
            return True
        if self._of[held.client] + size > self._most // 2:
            self._make(size, [one for one in self._large if one.client == held.client and one is not held])
        if self._taken + size > self._most:
            self._make(size, [one for one in self._large if one is not held])
        if self._taken + size > self._most or self._of[held.client] + size > self._most // 2:
            return False
        self._taken += size
        self._of[held.client] += size
        self._large[held] = None
        return True

    @staticmethod
    def _make(size: int, others: list[Held]) -> None:
        for one in others:
            if size <= 0:
                return
            if one.arriving is not None:
                size -= one.size
                one.give_way()

    def give(self, held: Held, size: int) -> None:
        """Give room back."""
        if self._large.pop(held, 0) is None:
            self._taken -= size
            self._of[held.client] -= size
            if not self._of[held.client]:
                del self._of[held.client]
