"""Score requests of many clients, answered by one call of the library.

Nobody waits for company: a request that finds the scorer idle is scored at once. While a call runs, those that arrive
gather, and the next call takes all of them. So one client never waits, and under load a request waits for one call. A
score depends on its pair alone (a promise of every scorer), which is why pairs of strangers may be scored together.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from matchloom.service.metrics import Metrics
from matchloom.service.steps import blocks_of, score_steps, sizes_of
from matchloom.service.working import Workers
from matchloom.types import Pair, Scores

_PAIRS = 256  # in one call: a batch of the matcher's own


class _Asked(NamedTuple):
    pairs: Sequence[Pair]
    scores: asyncio.Future[Scores]


class Batcher:
    """The queue of one scorer."""

    def __init__(self, score: Callable[[Sequence[Pair]], Scores], workers: Workers, metrics: Metrics) -> None:
        self._score, self._workers, self._metrics = score, workers, metrics
        self._waiting: deque[_Asked] = deque()
        self._running: asyncio.Task[None] | None = None

    async def score(self, pairs: Sequence[Pair]) -> Scores:
        """The score of each pair. What is more than one call's work goes by itself, in steps."""
        if len(list(islice(blocks_of(sizes_of(pairs)), 2))) > 1:
            return await self._workers.call(score_steps, self._score, pairs)
        future: asyncio.Future[Scores] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Asked(pairs, future))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while batch := self._next():
                self._metrics.batch.observe(len(batch))
                await self._answer(batch)
        finally:
            self._running = None

    def _next(self) -> list[_Asked]:
        """Those who wait, the first ones first; who has gone meanwhile is left out."""
        batch: list[_Asked] = []
        count = 0
        while self._waiting and (not batch or count + len(self._waiting[0].pairs) <= _PAIRS):
            asked = self._waiting.popleft()
            if not asked.scores.done():
                batch.append(asked)
                count += len(asked.pairs)
        return batch

    async def _answer(self, batch: list[_Asked]) -> None:
        try:
            found = await self._workers.call(self._score, [pair for asked in batch for pair in asked.pairs])
        except Exception as error:
            if len(batch) == 1:
                _settle(batch[0], error)
                return
            for asked in batch:  # what one client asked must not be another's error
                await self._answer([asked])
            return
        start = 0
        for asked in batch:
            _settle(asked, found[start : start + len(asked.pairs)])
            start += len(asked.pairs)


def _settle(asked: _Asked, result: Scores | Exception) -> None:
    if asked.scores.done():  # its client has gone
        return
    if isinstance(result, Exception):
        asked.scores.set_exception(result)
    else:
        asked.scores.set_result(result)
