"""Threads that take turns: who has had least goes first.

Work may be cut into steps (a generator that yields between them and returns its result). After each step whoever waits
is looked at anew: first the client who has had the fewest seconds lately, and of one client's requests the one that has
had the fewest. So a small request waits for a step of a large one and not for its end, and two clients with large
requests share what a third does not need. Work whose request is over is dropped at its next step.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

_MEMORY = 10.0  # seconds after which what a client has had counts a third
_TURN = 0.02  # CPU seconds that are spent on a piece of work before others are looked at
_JOIN = 5.0  # seconds in which the last steps must be over when the service ends


class Turn:
    """A request's account: whose it is, and the CPU seconds that it has had."""

    __slots__ = ("client", "seconds")

    def __init__(self, client: str) -> None:
        self.client = client
        self.seconds: float = 0.0


class _Job:
    __slots__ = ("dropped", "future", "loop", "steps", "turn", "work")

    def __init__(self, work: Callable[[], Any], turn: Turn, loop: asyncio.AbstractEventLoop) -> None:
        self.work, self.turn, self.loop = work, turn, loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.steps: Generator[Any, None, Any] | None = None
        self.dropped = False
        self.future.add_done_callback(self._done)

    def _done(self, future: asyncio.Future[Any]) -> None:
        self.dropped = future.cancelled()


class Turns:
    """Some threads, and the work that waits for them."""

    def __init__(self, threads: int) -> None:
        self._count = threads
        self._threads: list[threading.Thread] = []
        self._waiting: list[_Job] = []
        self._condition = threading.Condition()
        self._ended = False
        self._had: dict[str, tuple[float, float]] = {}  # seconds, as of when

    async def call(self, work: Callable[[], Any], turn: Turn) -> Any:
        """Do some work in a thread; where it gives a generator, step by step."""
        job = _Job(work, turn, asyncio.get_running_loop())
        with self._condition:
            self._waiting.append(job)
            if len(self._threads) < self._count and not self._ended:
                thread = threading.Thread(target=self._run, name="matchloom-read", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._condition.notify()
        return await job.future

    def _run(self) -> None:
        while (job := self._next()) is not None:
            start = time.thread_time()
            result: Any = None
            error: BaseException | None = None
            over = False
            try:
                over, result = _stepped(job, start, lambda: bool(self._waiting) or self._ended)
            except BaseException as raised:
                over, error = True, raised
            with self._condition:
                self._count_seconds(job.turn, time.thread_time() - start)
                if not over and not self._ended:
                    self._waiting.append(job)
            if over:
                _settle(job, result, error)
            del job, result, error

    def _next(self) -> _Job | None:
        with self._condition:
            while True:
                self._waiting = [one for one in self._waiting if not one.dropped]
                if self._ended:
                    return None
                if self._waiting:
                    best = min(self._waiting, key=self._rank)
                    self._waiting.remove(best)
                    return best
                self._condition.wait()

    def _rank(self, job: _Job) -> tuple[float, float]:
        return round(self._had_by(job.turn.client), 1), job.turn.seconds

    def _had_by(self, client: str) -> float:
        seconds, when = self._had.get(client, (0.0, 0.0))
        return seconds * math.exp((when - time.monotonic()) / _MEMORY) if seconds else 0.0

    def _count_seconds(self, turn: Turn, seconds: float) -> None:
        turn.seconds += seconds
        self._had[turn.client] = (self._had_by(turn.client) + seconds, time.monotonic())
        if len(self._had) > 10_000:
            self._had = {name: one for name, one in self._had.items() if self._had_by(name) > 0.01}

    def close(self) -> None:
        """Drop what waits; the steps that are being done are finished."""
        with self._condition:
            self._ended = True
            waiting, self._waiting = self._waiting, []
            self._condition.notify_all()
        for job in waiting:
            _settle(job, None, asyncio.CancelledError())
        end = time.monotonic() + _JOIN
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))


def _stepped(job: _Job, start: float, others_wait: Callable[[], bool]) -> tuple[bool, Any]:
    """Go on with some work until its turn is over; whether it is done, and its result."""
    if job.steps is None:
        found = job.work()
        if not isinstance(found, Generator):
            return True, found
        job.steps = found
    while not job.dropped:
        try:
            next(job.steps)
        except StopIteration as end:
            return True, end.value
        if time.thread_time() - start > _TURN and others_wait():
            return False, None
    job.steps.close()
    return True, None


def _settle(job: _Job, result: Any, error: BaseException | None) -> None:
    def tell() -> None:
        if job.future.done():
            return
        if isinstance(error, asyncio.CancelledError):
            job.future.cancel()
        elif error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)

    try:
        job.loop.call_soon_threadsafe(tell)
    except RuntimeError:  # the loop has ended, and with it whoever waited
        return
