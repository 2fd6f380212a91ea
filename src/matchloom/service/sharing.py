"""One listening socket for several workers, and who of them takes the next connection.

asyncio takes all connections that wait, so that the worker that wakes first would have every client of a burst, and the
others none. Here a worker takes one at a time, and leaves it for a moment to one that has fewer. Counts stand in memory
that all share.
"""

from __future__ import annotations

import os
import socket
import time
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

from matchloom.service.server import Punctual

_MOMENT, _MOMENTS = 0.0005, 4  # seconds, and how often a connection is left to another


class Counts:
    """How many connections each worker has. `pids` and `open` are arrays that processes share; 0 is nobody's place."""

    def __init__(self, pids: Any, connections: Any) -> None:
        self._pids, self._open, self._own = pids, connections, 0

    def join(self) -> None:
        """Take the place of nobody, or of a worker that is no more."""
        with self._pids.get_lock():
            self._own = next(n for n, pid in enumerate(self._pids) if not pid or not _is_alive(pid))
            self._pids[self._own], self._open[self._own] = os.getpid(), 0

    def change(self, by: int) -> None:
        """A connection was opened or closed."""
        self._open[self._own] += by

    def has_most(self) -> bool:
        """Whether another worker has fewer connections."""
        own = self._open[self._own]
        return any(pid and n != self._own and self._open[n] < own for n, pid in enumerate(self._pids))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # asks, and sends nothing
    except ProcessLookupError:
        return False
    return True


class SharedSocket(socket.socket):
    """A listening socket of which a worker takes one connection at a time, if no other has fewer."""

    counts: Counts | None = None
    _took = False
    _left = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """A connection, and at the next call none."""
        self._took = not self._took
        if not self._took:
            raise BlockingIOError
        if self.counts is not None and self.counts.has_most() and self._left < _MOMENTS:
            self._left += 1
            self._took = False
            time.sleep(_MOMENT)
            raise BlockingIOError
        self._left = 0
        return super().accept()


def _reduced(shared: SharedSocket) -> tuple[Any, tuple[Any, ...]]:
    return _rebuilt, (DupFd(shared.fileno()), shared.family, shared.type, shared.proto, shared.counts)


def _rebuilt(held: Any, family: int, kind: int, protocol: int, counts: Counts | None) -> SharedSocket:
    made = SharedSocket(family, kind, protocol, fileno=held.detach())
    made.counts = Counted.counts = counts
    if counts is not None:
        counts.join()
    return made


ForkingPickler.register(SharedSocket, _reduced)


class Counted(Punctual):
    """A connection of a worker that shares its socket."""

    counts: Counts | None = None

    def connection_made(self, transport: Any) -> None:
        """One more."""
        super().connection_made(transport)
        if self.counts is not None:
            self.counts.change(1)

    def connection_lost(self, exc: Exception | None) -> None:
        """One less."""
        super().connection_lost(exc)
        if self.counts is not None:
            self.counts.change(-1)
