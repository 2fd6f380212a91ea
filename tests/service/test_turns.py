"""Who gets a thread: small requests pass large ones, clients share, what nobody waits for is dropped."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

from matchloom.service.limits import Limits
from matchloom.service.metrics import Metrics
from matchloom.service.problems import Refused
from matchloom.service.room import CLIENT
from matchloom.service.working import Workers


def made(**limits: Any) -> Workers:
    return Workers(Limits(**limits), Metrics())


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def large(steps: int, order: list[str], name: str) -> Generator[None, None, str]:
    for n in range(steps):
        order.append(f"{name}{n}")
        burn(0.03)
        yield
    return name


async def as_client(workers: Workers, client: str, work: Any, *given: Any) -> Any:
    CLIENT.set(client)
    async with workers.admitted():
        return await workers.call(work, *given)


@pytest.mark.parametrize("other", ["attacker", "somebody"])
def test_a_small_request_waits_for_a_step_and_not_for_the_end(other: str) -> None:
    order: list[str] = []

    async def run() -> None:
        workers = made(threads=1)
        big = [asyncio.create_task(as_client(workers, "attacker", large, 8, order, name)) for name in "ab"]
        while not order:
            await asyncio.sleep(0.001)
        assert await as_client(workers, other, lambda: order.append("small")) is None
        assert order.index("small") <= 3
        assert await asyncio.gather(*big) == ["a", "b"]
        workers.close()

    asyncio.run(run())
    assert order.index("b0") < order.index("a7"), "two large ones take turns"


def test_clients_share_whatever_one_of_them_sends() -> None:
    order: list[str] = []

    async def run() -> None:
        workers = made(threads=1)
        tasks = [asyncio.create_task(as_client(workers, "many", large, 3, order, f"m{n}-")) for n in range(6)]
        while len(order) < 6:
            await asyncio.sleep(0.001)
        await as_client(workers, "one", large, 3, order, "one-")
        position = order.index("one-2")
        assert sum(name.startswith("m") for name in order[:position]) < 18, "it does not wait for all of them"
        await asyncio.gather(*tasks)
        workers.close()

    asyncio.run(run())


def test_work_stops_at_its_next_step_when_its_request_is_over() -> None:
    steps: list[int] = []
    closed = threading.Event()

    def endless() -> Generator[None, None, None]:
        try:
            while True:
                steps.append(1)
                time.sleep(0.005)
                yield
        finally:
            closed.set()

    async def run() -> None:
        workers = made(threads=1, seconds=0.1)
        with pytest.raises(Refused, match="no answer"):
            await as_client(workers, "a", endless)
        assert await asyncio.to_thread(closed.wait, 10)
        count = len(steps)
        assert await as_client(workers, "a", lambda: "free") == "free"
        assert len(steps) == count
        workers.close()

    asyncio.run(run())


def test_closing_does_not_wait_for_the_end_of_what_has_steps() -> None:
    def endless() -> Generator[None, None, None]:
        while True:
            time.sleep(0.001)
            yield

    async def run() -> None:
        workers = made(threads=2, seconds=60)
        tasks = [asyncio.create_task(as_client(workers, "a", endless)) for _ in range(5)]
        await asyncio.sleep(0.05)
        await asyncio.to_thread(workers.close)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


def test_who_has_most_places_gives_one_to_who_has_none() -> None:
    async def run() -> None:
        workers = made(threads=1, waiting=4)
        go = threading.Event()
        greedy = [asyncio.create_task(as_client(workers, "greedy", go.wait, 10)) for _ in range(4)]
        await asyncio.sleep(0.02)
        with pytest.raises(Refused, match="4 requests are waiting"):
            await as_client(workers, "greedy", lambda: None)
        modest = asyncio.create_task(as_client(workers, "modest", lambda: "served"))
        await asyncio.sleep(0.02)
        go.set()
        assert await modest == "served"
        found = await asyncio.gather(*greedy, return_exceptions=True)
        assert sum(isinstance(one, Refused) for one in found) == 1
        workers.close()

    asyncio.run(run())


def test_a_write_that_is_answered_503_is_never_done_and_one_that_has_begun_is_told() -> None:
    done: list[str] = []
    go = threading.Event()

    def write(name: str) -> str:
        assert go.wait(10)
        done.append(name)
        return name

    async def run() -> None:
        workers = made(seconds=0.1)

        async def one(name: str, what: str = "faq") -> str:
            async with workers.admitted():
                return await workers.write(what, write, name)

        tasks = [asyncio.create_task(one(name)) for name in ("first", "second", "third")]
        await asyncio.sleep(0.3)
        go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert found[0] == "first", "it had begun, and is told as it is"
        assert all(isinstance(other, Refused) and other.status == 503 for other in found[1:])
        assert await one("fourth") == "fourth"
        assert await one("other", "tickets") == "other"
        workers.close()

    asyncio.run(run())
    assert done == ["first", "fourth", "other"]
