"""Folders that were written anew are taken up without a dropped request; broken ones are refused."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import httpx
import pytest

from matchloom.matcher import Matcher
from matchloom.search.lance.collection import LanceCollection
from matchloom.service.systems import Folder, Shelf
from matchloom.types import Pair
from tests.refusing import refused
from tests.service.making import ask, code_of, make_app, make_matcher, within

PAIR = {"query": "reset my password", "text": "choose Reset password"}


def test_a_matcher_that_was_trained_anew_is_taken_up_under_load(served: Path, tmp_path: Path) -> None:
    shutil.copytree(served / "mv", tmp_path / "mv")
    app = make_app(tmp_path, "mv")
    old = Matcher.load(tmp_path / "mv").score(**_pair())
    new = make_matcher(seed=7).score(**_pair())
    assert old != new

    async def work(client: httpx.AsyncClient) -> tuple[list[float], dict[str, object]]:
        seen: list[float] = []
        stop = asyncio.Event()

        async def asks() -> None:
            while not stop.is_set():
                response = await client.post("/v1/score", json={"pairs": [PAIR]})
                assert response.status_code == 200
                seen.append(response.json()["scores"][0])

        clients = [asyncio.create_task(asks()) for _ in range(4)]
        await asyncio.sleep(0.05)
        make_matcher(seed=7).save(tmp_path / "mv")
        done = (await client.post("/v1/reload", json={})).json()
        after = (await client.post("/v1/score", json={"pairs": [PAIR]})).json()["scores"][0]
        stop.set()
        await asyncio.gather(*clients)
        assert after == new
        return seen, done

    seen, done = within(app, work)
    assert done == {"reloaded": ["mv"], "refused": {}}
    assert set(seen) <= {old, new}, "every answer is one matcher's or the other's"
    assert seen[0] == old
    assert ask(app, "/v1/systems").json()["systems"][0]["generation"] == 2


def _pair() -> dict[str, str]:
    return {"pairs": PAIR["query"], "text": PAIR["text"]}


@pytest.mark.parametrize("broken", ["cut", "gone"])
def test_a_broken_folder_is_refused_and_the_old_one_goes_on(served: Path, tmp_path: Path, broken: str) -> None:
    for name in ("mv", "faq"):
        shutil.copytree(served / name, tmp_path / name)
    app = make_app(tmp_path, "mv", "faq")
    before = ask(app, "/v1/score", {"pairs": [PAIR]}).json()
    weights = tmp_path / "mv" / "weights.safetensors"
    if broken == "cut":
        weights.write_bytes(weights.read_bytes()[:-8])
    else:
        shutil.rmtree(tmp_path / "mv")
    done = ask(app, "/v1/reload", {}).json()
    assert done["reloaded"] == ["faq"]
    assert list(done["refused"]) == ["mv"]
    assert ask(app, "/v1/score", {"pairs": [PAIR]}).json() == before
    assert ask(app, "/ready").status_code == 200
    assert code_of(ask(app, "/v1/reload", {"systems": ["none"]})) == (404, "unknown")


def test_an_archive_that_another_process_wrote_is_seen(served: Path, tmp_path: Path) -> None:
    shutil.copytree(served / "tickets", tmp_path / "tickets")
    app = make_app(tmp_path, "tickets")
    asked = {"question": "where are my invoices", "top": 1}
    assert ask(app, "/v1/search", asked).json()["answers"][0]["id"] != "billing"
    LanceCollection.open(tmp_path / "tickets").add([Pair("where are my invoices", "Under Billing.", text_id="billing")])
    assert "billing" in [one["id"] for one in ask(app, "/v1/search", {**asked, "top": 9}).json()["answers"]]
    assert ask(app, "/v1/reload", {}).json()["reloaded"] == ["tickets"]
    assert "billing" in [one["id"] for one in ask(app, "/v1/search", {**asked, "top": 9}).json()["answers"]]


def test_what_cannot_be_served(tmp_path: Path, served: Path) -> None:
    with refused("missing", tmp_path):
        Shelf([Folder("empty", tmp_path)]).load()
    with refused("conflict", "'mv'"):
        Shelf([Folder("mv", served / "mv"), Folder("mv", served / "faq")])
    assert Folder.of(f"tickets={served / 'tickets'}") == Folder("tickets", served / "tickets")
    assert Folder.of(str(served / "mv")).name == "mv"
    for name in ("bm25=x", "a/b=x", "=x", "..=x"):
        with refused("bad_value", "cannot"):
            Folder.of(name)


def test_reloads_that_are_asked_for_meanwhile_are_one(served: Path) -> None:
    app = make_app(served, "mv", "faq")

    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        return await asyncio.gather(
            *(client.post("/v1/reload", json={"systems": ["mv"] if n % 2 else []}) for n in range(60))
        )

    answers = within(app, work)
    assert {response.status_code for response in answers} == {200}
    assert {tuple(response.json()["reloaded"]) for response in answers} == {("mv", "faq"), ("mv",)}
    assert app.state.service.shelf.systems["mv"].generation <= 4, "one that went on, one for all the others"
