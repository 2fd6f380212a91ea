"""Plain searches are answered in the loop, many at a time, as the route answers them; all else is the route's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from matchloom import Collection
from matchloom.service import quick
from matchloom.service.limits import Limits
from tests.service.making import ask, code_of, make_app, within

QUESTIONS = ["I forgot my pasword", "send me a bill", "delete everything", "الدفع", "zzz qqq", "parcel <b>"]


def routed(app: FastAPI, monkeypatch: pytest.MonkeyPatch, body: Any) -> httpx.Response:
    """The answer of the route alone."""
    with monkeypatch.context() as patch:
        patch.setattr(quick, "PATH", "/nowhere")
        return ask(app, "/v1/search", body)


def test_the_answers_are_those_of_the_route(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    for question in QUESTIONS:
        for more in ({}, {"top": 2}, {"system": "faq", "by": None, "alpha": None, "candidates": 7, "explain": False}):
            body = {"question": question, **more}
            fast, slow = ask(app, "/v1/search", body), routed(app, monkeypatch, body)
            assert (fast.status_code, fast.content) == (slow.status_code, slow.content)
            assert fast.headers["content-type"] == slow.headers["content-type"]
            assert fast.headers.keys() == slow.headers.keys()


def test_requests_that_come_together_are_compared_together(
    app: FastAPI, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    inner = Collection.search

    def search(self: Collection, question: Any, **more: Any) -> Any:
        sizes.append(len(question))
        return inner(self, question, **more)

    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        asked = [{"question": question, "top": n + 1} for n, question in enumerate(QUESTIONS)]
        return await asyncio.gather(*(client.post("/v1/search", json=one) for one in asked))

    monkeypatch.setattr(Collection, "search", search)
    found = within(app, work)
    monkeypatch.undo()
    assert max(sizes) > 1
    collection = Collection.open(served / "faq")
    for n, (question, response) in enumerate(zip(QUESTIONS, found, strict=True)):
        alone = collection.search(question, top=n + 1)
        assert [(one["id"], one["score"]) for one in response.json()["answers"]] == [
            (one.id, one.score) for one in alone
        ]


@pytest.mark.parametrize(
    "body",
    [
        {"question": "a", "top": 0},
        {"question": "a", "top": 101},
        {"question": "a", "top": "3"},
        {"question": "a", "top": True},
        {"question": 1},
        {"question": "a", "colour": "red"},
        {"question": "a", "system": "nobody"},
        {"question": "a", "by": "nobody"},
        {"question": "a", "explain": 1},
        {"question": "a", "candidates": 0},
        {"question": "word " * 3000},
        {},
        [],
        "question",
    ],
    ids=repr,
)
def test_what_is_wrong_is_told_by_the_route(app: FastAPI, monkeypatch: pytest.MonkeyPatch, body: Any) -> None:
    told, expected = ask(app, "/v1/search", body), routed(app, monkeypatch, body)
    assert code_of(told) == code_of(expected)
    assert told.json()["error"]["message"] == expected.json()["error"]["message"]


def test_one_that_fails_is_nobody_elses_error(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Collection.search

    def search(self: Collection, question: Any, **more: Any) -> Any:
        if "bad" in question:
            raise ZeroDivisionError
        return inner(self, question, **more)

    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        asked = ["good parcel", "bad", "good parcel"]
        return await asyncio.gather(*(client.post("/v1/search", json={"question": one}) for one in asked))

    monkeypatch.setattr(Collection, "search", search)
    found = within(app, work)
    assert [one.status_code for one in found] == [200, 500, 200]
    assert code_of(found[1]) == (500, "failed")


def test_more_than_may_wait_is_refused(served: Path) -> None:
    app = make_app(served, "faq", limits=Limits(waiting=2))

    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        return await asyncio.gather(*(client.post("/v1/search", json={"question": "parcel"}) for _ in range(9)))

    found = within(app, work)
    assert {one.status_code for one in found} <= {200, 503}
    assert any(one.status_code == 200 for one in found)


def test_it_is_counted_as_the_route_is(served: Path) -> None:
    app = make_app(served, "faq")
    ask(app, "/v1/search", {"question": "parcel"})
    assert b'matchloom_requests_total{route="/v1/search",status="200"} 1.0' in app.state.service.metrics.page()
    whole = json.loads(ask(app, "/v1/search", {"question": "parcel"}).content)
    assert whole["system"] == "faq"
