"""Collections that are changed, filtered, asked in batches and refitted through the service."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from matchloom import Collection, artifact
from matchloom.data.entries import Entry
from matchloom.search.folder import REFIT_LOCK
from matchloom.service import refits as refitting
from matchloom.service.collection_schemas import CollectionAnswer
from matchloom.service.limits import Limits
from matchloom.service.refits import Refits, result_of
from matchloom.service.service import Service
from tests.service.making import ask, code_of, make_app, within

ENTRY: dict[str, Any] = {
    "id": "billing",
    "text": "Under Billing.",
    "questions": ["where are my invoices", "old receipts"],
    "columns": {"category": "money", "url": "/bills"},
}


@pytest.fixture
def folder(served: Path, tmp_path: Path) -> Path:
    for name in ("faq", "tickets"):
        shutil.copytree(served / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def app(folder: Path) -> FastAPI:
    return make_app(folder, "faq", "tickets", writable=True)


def put(app: FastAPI, name: str, *entries: dict[str, Any]) -> httpx.Response:
    async def work(client: httpx.AsyncClient) -> httpx.Response:
        return await client.put(f"/v1/collections/{name}/entries", json={"entries": list(entries)})

    return within(app, work)


def best(app: FastAPI, question: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = ask(app, "/v1/search", {"question": question, "top": 1, **more}).json()["answers"][0]
    return found


def test_pairs_are_added_and_deleted_in_either_store(app: FastAPI, folder: Path) -> None:
    pair = {"query": "is there a boutique", "text": "In Lyon.", "text_id": "shop"}
    for name in ("faq", "tickets"):
        before = len(Collection.open(folder / name))
        done = ask(app, f"/v1/archives/{name}/pairs", {"pairs": [pair]})
        assert done.json() == {"new": 1, "replaced": 0}
        assert best(app, "boutique in Lyon", system=name)["id"] == "shop", "what was confirmed is found"
        assert len(Collection.open(folder / name)) == before + 1, "and on the disk"
        done = ask(app, f"/v1/archives/{name}/delete", {"ids": ["shop", "nobody"]})
        assert done.json() == {"deleted": 1, "unknown": ["nobody"]}
        assert len(Collection.open(folder / name)) == before


def test_entries_are_put_whole_and_removed(app: FastAPI, folder: Path) -> None:
    assert put(app, "faq", ENTRY).json() == {"put": 1, "ids": ["billing"]}
    found = best(app, "old receipts")
    assert (found["id"], found["question"], found["columns"]) == ("billing", "old receipts", ENTRY["columns"])
    assert put(app, "faq", {**ENTRY, "questions": ["where are my invoices"], "columns": {}}).json()["put"] == 1
    assert Collection.open(folder / "faq")["billing"].questions == ("where are my invoices",)
    assert ask(app, "/v1/search", {"question": "invoices"}).json()["answers"][0]["columns"] is None
    done = ask(app, "/v1/collections/faq/remove", {"ids": ["billing", "nobody"]})
    assert done.json() == {"removed": 1, "unknown": ["nobody"]}
    assert "billing" not in Collection.open(folder / "faq")
    assert put(app, "faq").json() == {"put": 0, "ids": []}


def test_search_filters_by_own_columns(app: FastAPI) -> None:
    put(app, "faq", ENTRY, {"id": "fish", "text": "In the sea.", "columns": {"category": "food"}})
    everything = ask(app, "/v1/search", {"question": "my password and invoices and the sea"}).json()["answers"]
    assert len(everything) > 2
    for where, expected in (({"category": "food"}, ["fish"]), ({"category": ["food", "money"]}, ["billing", "fish"])):
        found = ask(app, "/v1/search", {"question": "the password of the sea, invoices", "where": where}).json()
        assert sorted(one["id"] for one in found["answers"]) == expected
    unknown = ask(app, "/v1/search", {"question": "sea", "where": {"colour": "red"}})
    assert code_of(unknown) == (404, "unknown")
    for more in ({"system": "tickets"}, {"by": "bm25"}):
        refused = ask(app, "/v1/search", {"question": "sea", "where": {"category": "food"}, **more})
        assert code_of(refused) == (409, "cannot_filter")


def test_many_questions_are_answered_as_each_alone(app: FastAPI) -> None:
    questions = ["I forgot my pasword", "", "send me a bill", "zzz qqq", "هل"]
    for more in ({}, {"system": "tickets"}, {"by": "bm25"}, {"explain": True, "top": 2}):
        many = ask(app, "/v1/search", {"questions": questions, **more}).json()
        alone = [ask(app, "/v1/search", {"question": one, **more}).json() for one in questions]
        assert [one["answers"] for one in many["results"]] == [one["answers"] for one in alone]
        assert [one["known"] for one in many["results"]] == [one["known"] for one in alone]
        assert {key: many[key] for key in ("system", "kind", "by")} == {
            key: alone[0][key] for key in ("system", "kind", "by")
        }
    assert ask(app, "/v1/search", {"questions": []}).json()["results"] == []
    for wrong in ({}, {"question": "a", "questions": ["b"]}, {"questions": "a"}, {"questions": [1]}):
        assert code_of(ask(app, "/v1/search", wrong)) == (422, "invalid")


def test_too_many_questions_and_entries(folder: Path) -> None:
    app = make_app(folder, "faq", writable=True, limits=Limits(texts=2, words=20))
    assert code_of(ask(app, "/v1/search", {"questions": ["a"] * 3})) == (422, "too_many_texts")
    assert code_of(put(app, "faq", *[ENTRY] * 3)) == (422, "too_many_texts")
    assert code_of(put(app, "faq", {**ENTRY, "questions": ["a"] * 3})) == (422, "too_many_texts")
    assert code_of(put(app, "faq", {**ENTRY, "columns": {"x": "word " * 99}})) == (422, "too_many_words")
    assert code_of(put(app, "faq", {**ENTRY, "id": "x" * 501})) == (422, "text_too_long")


def test_a_client_is_told_how_much_has_changed(app: FastAPI) -> None:
    about = ask(app, "/v1/collections/faq").json()
    assert (about["entries"], about["questions"], about["changed_since_fit"]) == (6, 8, 0)
    assert (about["changed_since_report"], about["writable"]) == (0, True)
    assert about["refit"] == {"state": "idle", "last": None, "failed": None}
    put(app, "faq", ENTRY)
    about = ask(app, "/v1/collections/faq").json()
    assert (about["entries"], about["changed_since_fit"], about["changed_since_report"]) == (7, 1, 1)
    systems = {one["name"]: one for one in ask(app, "/v1/systems").json()["systems"]}
    assert (systems["faq"]["changed"], systems["faq"]["size"], systems["faq"]["writable"]) == (1, 7, True)
    assert systems["tickets"]["changed"] is None
    archive = ask(app, "/v1/collections/tickets").json()
    assert (archive["entries"], archive["questions"], archive["refit"]) == (6, 8, None)


def test_what_cannot_be_changed(app: FastAPI, folder: Path) -> None:
    read_only = make_app(folder, "faq")
    assert code_of(put(read_only, "faq", ENTRY)) == (403, "read_only")
    assert code_of(ask(read_only, "/v1/collections/faq/refit", {})) == (403, "read_only")
    assert code_of(put(app, "nobody", ENTRY)) == (404, "unknown")
    assert code_of(put(app, "tickets", ENTRY)) == (422, "not_supported")
    assert code_of(ask(app, "/v1/collections/tickets/refit", {})) == (422, "not_supported")
    assert code_of(put(app, "faq", {**ENTRY, "text": " "})) == (422, "refused")
    everything = list(Collection.open(folder / "faq").entries.ids)
    assert code_of(ask(app, "/v1/collections/faq/remove", {"ids": everything})) == (422, "refused")
    assert len(Collection.open(folder / "faq")) == 6


@pytest.mark.parametrize("name", ["faq", "tickets"])
def test_what_is_told_of_a_collection_is_what_is_described(served: Path, name: str) -> None:
    told = ask(make_app(served, "faq", "tickets"), f"/v1/collections/{name}").json()
    assert CollectionAnswer.model_validate(told).name == name


def test_another_writer_is_a_conflict(folder: Path) -> None:
    app = make_app(folder, "faq", writable=True, limits=Limits(seconds=0.4))
    with artifact.writing(folder / "faq"):
        assert code_of(put(app, "faq", ENTRY)) == (409, "conflict")
        assert best(app, "I forgot my password")["id"] == "password", "searches go on"
    with artifact.try_lock(folder / "faq" / REFIT_LOCK):
        assert code_of(ask(app, "/v1/collections/faq/refit", {})) == (409, "conflict")
        assert ask(app, "/v1/collections/faq").json()["refit"]["state"] == "running"


@pytest.mark.slow
def test_a_refit_goes_on_aside_and_is_taken_up(app: FastAPI) -> None:
    put(app, "faq", ENTRY)
    begun = ask(app, "/v1/collections/faq/refit", {})
    assert (begun.status_code, begun.json()["state"]) == (202, "running")
    about = until_idle(app)
    assert (about["changed_since_fit"], about["changed_since_report"]) == (0, 1)
    last = about["refit"]["last"]
    assert (last["kept"], last["entries"], last["changed"]) == (True, 7, 1)
    assert best(app, "old receipts")["id"] == "billing"


@pytest.mark.slow
def test_changes_that_have_come_to_rest_are_learnt_by_themselves(folder: Path) -> None:
    app = make_app(folder, "faq", writable=True, refit=0.2)
    service: Service = app.state.service
    assert put(app, "faq", ENTRY).status_code == 200
    assert ask(app, "/v1/collections/faq").json()["refit"]["state"] == "waiting"
    refits = service.refits
    system = service.shelf.systems["faq"]
    refits._look(system)
    assert result_of(folder / "faq") is None, "it was seen just now"
    time.sleep(0.3)
    refits._look(system)
    assert until_idle(app)["changed_since_fit"] == 0
    refits._look(system)
    time.sleep(0.3)
    refits._look(system)
    assert ask(app, "/v1/collections/faq").json()["refit"]["state"] == "idle", "nothing has changed since"


def test_changes_that_never_rest_are_learnt_all_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app(folder, "faq", writable=True, refit=30.0)
    service: Service = app.state.service
    assert put(app, "faq", ENTRY).status_code == 200
    system = service.shelf.systems["faq"]
    assert system.collection is not None
    now, begun = 0, []
    monkeypatch.setattr(refitting, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(service.refits, "begin", lambda _: begun.append(now))
    for now in range(0, 1000, 20):  # a change every 20 seconds
        if now < 700:
            system.collection.replace([Entry(f"new {now}", f"text {now}")])
        service.refits._look(system)
    assert begun[:2] == [300, 600], "ten times as long as changes are waited for"
    assert begun[2] == 680 + 40, "the last one has come to rest"


def test_a_refit_that_was_not_kept_is_not_tried_again_without_need(folder: Path) -> None:
    app = make_app(folder, "faq", writable=True, refit=30.0)
    assert put(app, "faq", ENTRY).status_code == 200
    system = app.state.service.shelf.systems["faq"]
    result = '{"entries":7,"questions":10,"changed":1,"before":1.0,"after":0.5,"kept":false,"why":"","finished":""}'
    (folder / "faq" / ".refit.json").write_text(result)
    refits: Refits = app.state.service.refits
    assert not refits._is_due(system)
    assert ask(app, "/v1/collections/faq").json()["refit"]["state"] == "idle"
    assert put(app, "faq", {**ENTRY, "id": "another", "text": "Another one."}).status_code == 200
    assert refits._is_due(system), "there is more to learn from"
    (folder / "faq" / ".refit.json").write_text("{")
    assert result_of(folder / "faq") is None


def until_idle(app: FastAPI) -> dict[str, Any]:
    """What the collection is when no refit goes on."""
    for _ in range(600):
        about: dict[str, Any] = ask(app, "/v1/collections/faq").json()
        if about["refit"]["state"] != "running":
            return about
        time.sleep(0.05)
    raise AssertionError("the refit does not end")
