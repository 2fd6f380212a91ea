"""Threads, batches and queues: nothing waits without need, nothing piles up, nothing is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from matchloom.service.batching import Batcher
from matchloom.service.encoded import EncodedCandidates
from matchloom.service.limits import Limits
from matchloom.service.metrics import Metrics
from matchloom.service.problems import Refused
from matchloom.service.working import Workers
from matchloom.types import MatchloomError, Pair, Scores
from tests.service.making import make_matcher


class Slow:
    """A scorer that waits to be let go, and remembers what it was asked."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.go = threading.Event()

    def score(self, pairs: Sequence[Pair]) -> Scores:
        self.calls.append(len(pairs))
        assert self.go.wait(10)
        if any(pair.text == "bad" for pair in pairs):
            raise MatchloomError("a bad pair")
        return np.array([len(pair.query) for pair in pairs], np.float32)


def made(**limits: float) -> tuple[Workers, Metrics]:
    metrics = Metrics()
    return Workers(Limits(**limits), metrics), metrics  # type: ignore[arg-type]


def test_one_client_never_waits_and_those_who_come_meanwhile_go_together() -> None:
    slow = Slow()

    async def run() -> list[Scores]:
        workers, metrics = made()
        batcher = Batcher(slow.score, workers, metrics)
        first = asyncio.create_task(batcher.score([Pair("a", "x")]))
        while not slow.calls:  # it was not held back
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(batcher.score([Pair("b" * n, "x"), Pair("c", "x")])) for n in range(5)]
        gone = asyncio.create_task(batcher.score([Pair("gone", "x")] * 3))
        await asyncio.sleep(0.01)
        gone.cancel()  # a client who went away
        slow.go.set()
        found = [await task for task in (first, *others)]
        workers.close()
        return found

    found = asyncio.run(run())
    assert slow.calls == [1, 10]
    assert [scores.tolist() for scores in found] == [[1], *([n, 1] for n in range(5))]


def test_one_client_s_error_is_not_another_s() -> None:
    slow = Slow()

    async def run() -> list[object]:
        workers, metrics = made()
        batcher = Batcher(slow.score, workers, metrics)
        asked = ["x", "x", "bad", "x"]
        tasks = [asyncio.create_task(batcher.score([Pair("abc", text)])) for text in asked]
        await asyncio.sleep(0.01)
        slow.go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        workers.close()
        return list(found)

    found = asyncio.run(run())
    assert isinstance(found[2], MatchloomError)
    assert [one.tolist() for one in found if isinstance(one, np.ndarray)] == [[3], [3], [3]]


def test_a_large_crowd_is_parted() -> None:
    slow = Slow()
    slow.go.set()

    async def run() -> None:
        workers, metrics = made()
        batcher = Batcher(slow.score, workers, metrics)
        await asyncio.gather(*(batcher.score([Pair("a", "x")] * 100) for _ in range(6)))
        workers.close()

    asyncio.run(run())
    assert sum(slow.calls) == 600
    assert max(slow.calls) <= 256


def test_one_too_many_is_refused_at_once_and_places_come_back() -> None:
    async def run() -> None:
        workers, metrics = made(waiting=2)
        go = asyncio.Event()

        async def hold() -> None:
            async with workers.admitted():
                await go.wait()

        held = [asyncio.create_task(hold()) for _ in range(2)]
        await asyncio.sleep(0)
        for _ in range(3):
            with pytest.raises(Refused, match="2 requests are waiting") as found:
                async with workers.admitted():
                    pass
            assert (found.value.status, found.value.retry) == (503, 1)
        go.set()
        await asyncio.gather(*held)
        async with workers.admitted():
            assert metrics.registry.get_sample_value("matchloom_waiting_requests") == 1
        assert metrics.registry.get_sample_value("matchloom_waiting_requests") == 0
        workers.close()

    asyncio.run(run())


def test_what_takes_too_long_is_given_up_and_what_waits_behind_it_is_dropped() -> None:
    started: list[int] = []
    go = threading.Event()

    def work(n: int) -> None:
        started.append(n)
        assert go.wait(10)

    async def run() -> None:
        workers, _ = made(threads=1, seconds=0.05)

        async def one(n: int) -> None:
            async with workers.admitted():
                await workers.call(work, n)

        found = await asyncio.gather(*(one(n) for n in range(4)), return_exceptions=True)
        assert [type(one) for one in found] == [Refused] * 4
        assert all(isinstance(one, Refused) and one.status == 503 for one in found)
        go.set()
        await asyncio.sleep(0.01)
        workers.close()

    asyncio.run(run())
    assert started == [0], "work whose request was given up was begun"


def test_a_write_that_has_begun_is_finished() -> None:
    done: list[str] = []
    go = threading.Event()

    def write() -> None:
        assert go.wait(10)
        done.append("written")

    async def run() -> None:
        workers, _ = made()
        task = asyncio.create_task(workers.write("faq", write))
        await asyncio.sleep(0.01)
        task.cancel()
        go.set()
        workers.close()

    asyncio.run(run())
    assert done == ["written"]


def test_encoded_candidates_are_kept_within_their_room() -> None:
    matcher = make_matcher()
    lists = [[f"password {n}", "invoice"] for n in range(4)]
    size = sum(block.encoded.numel() * block.encoded.element_size() for block in matcher.encode(lists[0]).blocks)
    kept = EncodedCandidates(matcher, 2 * size)
    first = kept.of(lists[0])
    assert kept.of(list(lists[0])) is first
    kept.of(lists[1])
    assert kept.of(lists[0]) is first, "what was used last stays"
    kept.of(lists[2])
    assert kept.of(lists[0]) is first
    kept.of(lists[3])
    kept.of(lists[2])
    assert kept.of(lists[0]) is not first
    assert EncodedCandidates(matcher, 1).of(lists[0]).texts == lists[0], "what does not fit is not kept"
    assert kept.of(["ab", "c"]).texts != kept.of(["a", "bc"]).texts
