"""Calls of the library, which block: a few threads, a bounded number of requests that wait for them, a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import ParamSpec, TypeVar

from matchloom.service.limits import Limits
from matchloom.service.metrics import Metrics
from matchloom.service.problems import overloaded

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """The threads that call the library, and who waits for them.

    Reading and writing have threads of their own, and each collection that is written one: it has one writer anyway,
    and a long write must keep neither readers waiting nor those who write another.
    """

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._readers = ThreadPoolExecutor(limits.threads, "matchloom-read")
        self._writers: dict[str, ThreadPoolExecutor] = {}
        self._inside = 0

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """A place for one request, or a refusal at once; what takes longer than the limit is given up.

        Work that has begun in a thread ends there, work that has not is dropped: nothing piles up behind a deadline.
        """
        if self._inside >= self._limits.waiting:
            raise overloaded(f"{self._inside} requests are waiting already")
        self._inside += 1
        self._metrics.waiting.set(self._inside)
        try:
            async with asyncio.timeout(self._limits.seconds):
                yield
        except TimeoutError:
            raise overloaded(f"there was no answer within {self._limits.seconds:g} seconds") from None
        finally:
            self._inside -= 1
            self._metrics.waiting.set(self._inside)

    async def call(self, work: Callable[P, T], /, *given: P.args, **named: P.kwargs) -> T:
        """Call the library in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, lambda: work(*given, **named))

    async def write(self, what: str, work: Callable[P, T], /, *given: P.args, **named: P.kwargs) -> T:
        """Change `what` in the one thread that does; what has begun is finished, whoever waits for it."""
        writer = self._writers.get(what)
        if writer is None:
            writer = self._writers[what] = ThreadPoolExecutor(1, "matchloom-write")
        made = asyncio.get_running_loop().run_in_executor(writer, lambda: work(*given, **named))
        return await asyncio.shield(made)

    def close(self) -> None:
        """Finish what was begun."""
        self._readers.shutdown(cancel_futures=True)
        for writer in self._writers.values():
            writer.shutdown()
