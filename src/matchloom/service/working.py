"""Calls of the library, which block: a few threads, a bounded number of requests that wait for them, a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import Any, ParamSpec, TypeVar, overload

from matchloom.service.limits import Limits
from matchloom.service.metrics import Metrics
from matchloom.service.problems import overloaded
from matchloom.service.room import CLIENT
from matchloom.service.turns import Turn, Turns

P = ParamSpec("P")
T = TypeVar("T")
_TURN: ContextVar[Turn | None] = ContextVar("turn", default=None)
_DEADLINE: ContextVar[float] = ContextVar("deadline", default=0.0)  # of time.monotonic
_LARGE = 0.25  # CPU seconds after which a request gives its place to one that has had none, where all are taken


class _Place:
    """A request that was admitted."""

    def __init__(self, turn: Turn, timeout: asyncio.Timeout) -> None:
        self.turn, self.timeout = turn, timeout
        self.gave_way = False

    def give_way(self) -> None:
        self.gave_way = True
        self.timeout.reschedule(asyncio.get_running_loop().time())


class Workers:
    """The threads that call the library, and who waits for them.

    Reading and writing have threads of their own, and each collection that is written one: it has one writer anyway,
    and a long write must keep neither readers waiting nor those who write another.
    """

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._turns = Turns(limits.threads)
        self._writers: dict[str, ThreadPoolExecutor] = {}
        self._inside: dict[_Place, None] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for an answer."""
        return not self._inside

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """A place for one request, or a refusal at once; what takes longer than the limit is given up.

        Work that has begun in a thread ends with its step, work that has not is dropped: nothing piles up behind a
        deadline. Where all places are taken, a newcomer gets one of the client who has most of them, if it has
        fewer itself, or of a request that has had much already.
        """
        turn = Turn(CLIENT.get())
        if len(self._inside) >= self._limits.waiting:
            self._make_place(turn)
        place = None
        _TURN.set(turn)
        _DEADLINE.set(time.monotonic() + self._limits.seconds)
        try:
            async with asyncio.timeout(self._limits.seconds) as timeout:
                place = _Place(turn, timeout)
                self._inside[place] = None
                self._metrics.waiting.set(len(self._inside))
                yield
        except TimeoutError:
            if place is not None and place.gave_way:
                raise overloaded("many requests are waiting, and smaller ones go first") from None
            raise overloaded(f"there was no answer within {self._limits.seconds:g} seconds") from None
        finally:
            if place is not None:
                self._inside.pop(place, None)
            self._metrics.waiting.set(len(self._inside))

    def _make_place(self, newcomer: Turn) -> None:
        """Let a request give way, or refuse the newcomer."""
        of: dict[str, list[_Place]] = {}
        for place in self._inside:
            of.setdefault(place.turn.client, []).append(place)
        most = max(of.values(), key=len)
        largest = max(most, key=lambda place: place.turn.seconds)
        if len(most) > len(of.get(newcomer.client, ())) + 1 or largest.turn.seconds > _LARGE:
            del self._inside[largest]
            largest.give_way()
            return
        raise overloaded(f"{len(self._inside)} requests are waiting already")

    @overload
    async def call(self, work: Callable[P, Generator[Any, None, T]], /, *given: P.args, **named: P.kwargs) -> T: ...

    @overload
    async def call(self, work: Callable[P, T], /, *given: P.args, **named: P.kwargs) -> T: ...

    async def call(self, work: Callable[P, Any], /, *given: P.args, **named: P.kwargs) -> Any:
        """Call the library in a thread. Work that yields gives others a turn there."""
        turn = _TURN.get() or Turn(CLIENT.get())
        return await self._turns.call(lambda: work(*given, **named), turn)

    async def write(self, what: str, work: Callable[P, T], /, *given: P.args, **named: P.kwargs) -> T:
        """Change `what` in the one thread that does.

        What has not begun when its time is over is never done. What has begun is finished, and waited for: who is told
        that a write failed can rely on it.
        """
        writer = self._writers.get(what)
        if writer is None:
            writer = self._writers[what] = ThreadPoolExecutor(1, "matchloom-write")
        context = copy_context()  # in which the deadline stands
        made: Future[T] = writer.submit(lambda: context.run(work, *given, **named))
        waited = asyncio.wrap_future(made)
        try:
            return await asyncio.shield(waited)
        except asyncio.CancelledError:
            if made.cancel():  # nobody has begun it
                raise
        while True:
            with suppress(asyncio.CancelledError):
                return await asyncio.shield(waited)

    @staticmethod
    def seconds_left(least: float = 0.05) -> float:
        """How long the request that is worked on may still take; read where it was admitted."""
        return max(least, _DEADLINE.get() - time.monotonic())

    def close(self) -> None:
        """Finish what was begun."""
        self._turns.close()
        for writer in self._writers.values():
            writer.shutdown(cancel_futures=True)
