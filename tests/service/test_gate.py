"""Requests begin a few in a turn of the loop; whether the process is alive is told before those that wait."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from matchloom.service.gate import Gate
from matchloom.service.guard import ALIVE
from matchloom.service.quick import QuickSearch
from tests.service.making import ask, make_app, within


def test_so_many_begin_in_a_turn_and_in_their_order() -> None:
    began: list[tuple[int, int]] = []

    async def run() -> None:
        gate, turn = Gate(at_once=4), 0

        async def request(number: int) -> None:
            await gate.enter()
            began.append((turn, number))

        tasks = [asyncio.create_task(request(number)) for number in range(50)]
        tasks[20].cancel()
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            turn += 1
        for _ in range(3):
            await asyncio.sleep(0)
        await asyncio.wait_for(gate.enter(), 60)  # and one that comes later

    asyncio.run(run())
    assert [number for _, number in began] == [number for number in range(50) if number != 20]
    assert max(Counter(turn for turn, _ in began).values()) <= 4


def test_one_that_goes_while_it_waits_takes_nobodys_place() -> None:
    async def run() -> int:
        gate = Gate(at_once=1)
        await gate.enter()
        waiting = [asyncio.create_task(gate.enter()) for _ in range(100)]
        await asyncio.sleep(0)
        for task in waiting[:-1]:
            task.cancel()
        turns = 0
        while not waiting[-1].done():
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert asyncio.run(run()) < 10


def test_health_is_told_before_those_that_wait(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, began = make_app(served, "faq"), 0
    inner = QuickSearch.__call__

    def begin(self: QuickSearch, *given: Any) -> Any:
        nonlocal began
        began += 1
        return inner(self, *given)

    async def work(client: httpx.AsyncClient) -> int:
        asked = [client.post("/v1/search", json={"question": f"parcel {n}"}) for n in range(100)]
        searches = [asyncio.create_task(one) for one in asked]
        health = await client.get("/health")
        seen = began
        assert health.status_code == 200
        assert {one.status_code for one in await asyncio.gather(*searches)} == {200}
        return seen

    monkeypatch.setattr(QuickSearch, "__call__", begin)
    assert within(app, work) < 50
    assert began == 100


def test_health_is_what_its_route_would_tell(app: FastAPI) -> None:
    plain, routed = ask(app, "/health"), ask(app, "/health", {})
    assert plain.content == ALIVE
    assert plain.json() == {"status": "alive"}
    assert routed.status_code == 405
    assert ask(app, "/health", host="evil.example").status_code == 421
    told = app.state.service.metrics.page()
    assert b'matchloom_requests_total{route="/health",status="200"}' in told

    async def with_body(client: httpx.AsyncClient) -> httpx.Response:
        return await client.request("GET", "/health", json={})

    slow = within(app, with_body)
    assert (slow.status_code, slow.content) == (200, plain.content)
    assert slow.headers.keys() == plain.headers.keys()
    assert slow.headers["content-type"] == plain.headers["content-type"]
