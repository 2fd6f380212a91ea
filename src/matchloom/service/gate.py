"""A few requests begin at each turn of the loop, so that a turn is short and whoever only looks in gets through.

Two hundred requests that are there at once would otherwise begin in one turn, and a new connection needs four turns
until its request is read. Those that wait here are begun in the order in which they came.
"""

from __future__ import annotations

import asyncio
from collections import deque

_AT_ONCE = 16  # requests that begin in one turn; half as many would be compared together too seldom (`quick`)


class Gate:
    """Lets requests begin, so many in a turn."""

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        self._at_once = self._left = at_once
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._turns = False  # whether the next turn of the loop is awaited

    async def enter(self) -> None:
        """Begin, now or in a turn to come."""
        loop = asyncio.get_running_loop()
        if not self._turns:
            self._turns = True
            loop.call_soon(self._turn)
        if self._left > 0 and not self._waiting:
            self._left -= 1
            return
        waiting: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiting)
        await waiting

    def _turn(self) -> None:
        self._left = self._at_once
        while self._waiting and self._left > 0:
            waiting = self._waiting.popleft()
            if not waiting.done():  # who has gone takes nobody's place
                waiting.set_result(None)
                self._left -= 1
        self._turns = self._left < self._at_once
        if self._turns:
            asyncio.get_running_loop().call_soon(self._turn)
