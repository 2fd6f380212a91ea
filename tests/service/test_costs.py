"""What one request can cost others: values that are looked at, answers that are held, work that stops the loop."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from matchloom.search.collection import Collection
from matchloom.service import collection_schemas, pauses, rerank_schemas, schemas
from matchloom.service.desk import schemas as desk_schemas
from matchloom.service.desk.inbox import waiting_questions
from matchloom.service.desk.questions import Asked, AskedQuestion
from matchloom.service.handlers import search_many
from matchloom.service.limits import Limits
from matchloom.service.problems import Refused
from matchloom.service.quick import QuickSearch
from matchloom.service.systems import Shelf
from tests.service.making import PAIRS, ask, code_of, make_app

REQUESTS = [
    model
    for module in (schemas, collection_schemas, rerank_schemas, desk_schemas)
    for model in vars(module).values()
    if isinstance(model, type) and issubclass(model, schemas.Asked | rerank_schemas.Lenient)
]


def lists_in(schema: Any) -> Iterator[dict[str, Any]]:
    """Every list of pydantic's description of a model."""
    if isinstance(schema, dict):
        if schema.get("type") == "list":
            yield schema
        for value in schema.values():
            yield from lists_in(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from lists_in(value)


@pytest.mark.parametrize("model", REQUESTS, ids=lambda model: model.__name__)
def test_a_list_is_left_at_its_first_wrong_item(model: Any) -> None:
    """A million wrong items would be a million errors, made while nobody else is answered."""
    for found in lists_in(model.__pydantic_core_schema__):
        assert found.get("fail_fast"), found


def test_there_are_requests_with_lists() -> None:
    assert len([model for model in REQUESTS if [*lists_in(model.__pydantic_core_schema__)]]) >= 10


@pytest.fixture(scope="module")
def app(served: Path) -> FastAPI:
    return make_app(served, "faq", "mv", limits=Limits(cells=2000))


def test_a_ranking_explains_the_best_within_one_budget(app: FastAPI) -> None:
    asked = {"system": "faq", "query": "reset my password", "candidates": [f"the password {n}" for n in range(90)]}
    rows = ask(app, "/v1/rank", {**asked, "explain": True}).json()["ranking"]
    explained = [row["explanation"] is not None for row in rows]
    assert explained[0]
    assert not explained[-1]
    assert explained == sorted(explained, reverse=True), "the best ones first"
    long = {**asked, "candidates": ["word " * 900], "explain": True}
    assert code_of(ask(app, "/v1/rank", long)) == (422, "too_many_words")


@pytest.mark.parametrize("by", ["bm25", "mv"])
def test_a_search_by_another_explains_within_the_same_budget(served: Path, by: str) -> None:
    few = make_app(served, "faq", "mv", limits=Limits(cells=60))
    many = make_app(served, "faq", "mv")
    asked = {"system": "faq", "by": by, "question": "reset my password to pay by invoice", "explain": True}
    counts = []
    for one in (few, many):
        answers = ask(one, "/v1/search", asked).json()["answers"]
        counts.append(sum(answer["explanation"] is not None for answer in answers))
    assert counts[0] < counts[1]


def test_many_questions_have_the_answers_of_each_and_no_more_bytes_than_there_is_room(served: Path) -> None:
    app = make_app(served, "faq")
    questions = ["reset my password", " ", "pay by invoice"]
    many = ask(app, "/v1/search", {"questions": questions, "top": 2}).json()["results"]
    for question, found in zip(questions, many, strict=True):
        if question.strip():
            one = ask(app, "/v1/search", {"question": question, "top": 2}).json()
            assert found == {name: one[name] for name in found}
    assert many[1]["answers"] == []
    service = app.state.service
    steps = search_many(service.shelf.systems["faq"], questions * 50, None, {"top": 9}, most=10_000)
    with pytest.raises(Refused) as told:
        list(steps)
    assert (told.value.status, told.value.code) == (422, "too_many_texts")


def test_the_description_is_made_aside(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    made, threads = app.openapi, []

    def described() -> dict[str, Any]:
        threads.append(threading.current_thread().name)
        return made()

    monkeypatch.setattr(app, "openapi", described)
    assert ask(app, "/openapi.json").json()["info"]["title"] == "matchloom"
    assert threads == ["matchloom-read"]


def test_the_inbox_takes_turns(served: Path) -> None:
    app = make_app(served, "faq")
    shelf: Shelf = app.state.service.shelf
    shelf.load()
    lines = [AskedQuestion(float(n), "faq", f"zebra {n}", confident=False) for n in range(100)]
    steps = waiting_questions(shelf.systems["faq"], Asked(lines, 0), [], set())
    assert len(list(steps)) == 4, "some questions at a time"


def test_all_objects_are_walked_through_when_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """And never by itself: that would come when somebody asks for much."""
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    try:
        pauses.keep_short()
        assert gc.get_threshold()[2] > 1_000_000
        assert sys.getswitchinterval() <= 0.0002, "the loop waits so long at each read, write and look at a file"
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
    walks: list[bool] = []
    idle = False
    monkeypatch.setattr(pauses, "_LOOK", 0)
    monkeypatch.setattr(gc, "get_count", lambda: (0, 0, 99))
    monkeypatch.setattr(gc, "collect", lambda: walks.append(idle))

    async def look() -> None:
        nonlocal idle
        task = asyncio.create_task(pauses.collect_when_idle(lambda: idle))
        for _ in range(5):
            await asyncio.sleep(0)
        assert walks == []
        idle = True
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(look())
    assert walks
    assert all(walks)


def test_fewer_searches_are_done_at_once_where_they_take_long(served: Path) -> None:
    """They are done in the loop, where everybody waits for them."""
    quick = QuickSearch(make_app(served, "faq").state.service)
    sizes = []
    for seconds in (0.001, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.005, 0.001, 0.001):
        quick._adapt(seconds)
        sizes.append(quick._at_once)
    assert sizes == [32, 16, 8, 4, 2, 1, 1, 1, 2, 4]


def test_a_collection_that_grew_is_searched_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was small when it was fitted, and an import of 40,000 entries makes each search ten milliseconds."""
    made = Collection.fit(PAIRS)
    assert made.is_quick
    monkeypatch.setattr("matchloom.search.collection.asking._QUICK", 3)
    made.add([(f"question {n}", f"answer {n}") for n in range(4)])
    assert not made.is_quick
