"""The Python client gives what the library gives, and says what went wrong in one line."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from matchloom.client import AsyncClient, Client, ServiceError
from matchloom.data.entries import Entry
from matchloom.explanation import Explanation, explain
from matchloom.fitting import Fitted
from matchloom.matcher import Matcher
from matchloom.search.collection import Collection
from matchloom.search.lance.collection import LanceCollection
from matchloom.types import Added, Pair
from tests.explanation.samples import lexical_like, of_words, path_like, tensor_like
from tests.refusing import refused
from tests.service.making import PAIRS, TEXTS, make_app, running

KEY = "correct-horse-battery"


@pytest.fixture(scope="module")
def folder(served: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copied = tmp_path_factory.mktemp("client")
    for name in ("faq", "mv", "tickets"):
        shutil.copytree(served / name, copied / name)
    return copied


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    app = make_app(folder, "faq", "mv", "tickets", key=KEY, writable=True, feedback=folder / "thumbs.jsonl")
    with running(app) as address:
        yield address


def test_it_gives_what_the_library_gives(url: str, folder: Path) -> None:
    matcher, fitted = Matcher.load(folder / "mv"), Fitted.load(folder / "faq")
    index = LanceCollection.open(folder / "tickets")
    question = "I forgot my pasword"
    with Client(url, key=KEY) as service:
        assert [one["name"] for one in service.systems()] == ["faq", "mv", "tickets"]
        assert np.array_equal(service.score(PAIRS, system="mv"), matcher.score(PAIRS))
        assert service.score(question, TEXTS[0], system="mv") == matcher.score(question, TEXTS[0])
        assert service.rank(question, TEXTS, top=3, system="mv") == matcher.rank(question, TEXTS, top=3)
        assert service.search(question, top=3) == fitted.rank(question, top=3)
        assert service.search(question, top=3, system="tickets") == index.search(question, top=3)
        assert service.search("reset my password", top=2, by="bm25")[0].id == "password"
        by_itself = Collection.open(folder / "faq").rank(question, TEXTS)
        ranked = service.rank(question, TEXTS, system="faq")
        assert (ranked, ranked.sureness) == (by_itself, by_itself.sureness)
        assert service.rank(question, TEXTS, system="mv").sureness is None
        for stated in ({"precision": 0.9}, {"coverage": 0.5}):
            with pytest.raises(ServiceError) as error:
                service.rank(question, TEXTS, system="mv", **stated)
            assert (error.value.status, error.value.code) == (409, "cannot_promise")
        told = service.search(question, top=1, system="tickets", explain=True)[0]
        assert _parts(told.explanation)[:-1] == _parts(_why(index, question))[:-1], "all but the map"
        why = service.explain(question, TEXTS[0], system="mv")
        assert _parts(why) == _parts(explain(matcher, question, TEXTS[0]))
        assert service.explain(question, id="password").scorer == "answer_ranker"
        assert service.reload("mv") == {}


def _parts(explanation: Explanation) -> list[object]:
    """What was sent; sums over it may differ in their sixth digit."""
    plain = explanation.to_dict(grid=True)
    return [plain[name] for name in ("scorer", "score", "residual", "signals", "components", "paths", "grid")]


def _why(index: LanceCollection, question: str) -> Explanation:
    found = index.search(question, top=1, explain=True)[0].explanation
    assert found is not None
    return found


def test_it_writes(url: str, folder: Path) -> None:
    pairs = [Pair("a new one", "its answer", text_id="new"), Pair("a wrong one", "not this", 0)]
    with Client(url, key=KEY) as service:
        assert service.add("tickets", pairs) == Added(1, 0, 1)
        service.feedback("a new one", "its answer", True, id="new", who="ann", system="tickets")
        assert service.remove("tickets", ["new"]) == 1
    assert '"id": "new", "label": 1, "who": "ann"' in (folder / "thumbs.jsonl").read_text(encoding="utf-8")


def test_it_changes_a_collection(url: str, folder: Path) -> None:
    entry = Entry("shop", "In Lyon.", ("is there a boutique",), {"category": "place"})
    with Client(url, key=KEY) as service:
        assert service.replace("faq", [entry]) == 1
        found = service.search(["boutique", "I forgot my pasword"], top=2)
        assert found == Collection.open(folder / "faq").search(["boutique", "I forgot my pasword"], top=2)
        assert found[0][0].columns == {"category": "place"}
        assert [one.id for one in service.search("boutique", where={"category": "place"})] == ["shop"]
        assert service.status("faq")["changed_since_fit"] >= 1
        assert service.remove("faq", ["shop", "nobody"]) == 1
        with pytest.raises(ServiceError) as found_error:
            service.refit("tickets")
        assert (found_error.value.status, found_error.value.code) == (422, "not_supported")


def test_the_asynchronous_one_does_the_same(url: str, folder: Path) -> None:
    matcher, fitted = Matcher.load(folder / "mv"), Fitted.load(folder / "faq")

    async def work() -> None:
        async with AsyncClient(url, key=KEY) as service:
            assert len(await service.systems()) == 3
            asked = [service.score(pair.query, pair.text, system="mv") for pair in PAIRS]
            assert np.array_equal(await asyncio.gather(*asked), matcher.score(PAIRS))
            assert await service.rank("bills", TEXTS, system="mv") == matcher.rank("bills", TEXTS)
            assert await service.search("bills", top=2) == fitted.rank("bills", top=2)
            assert (await service.explain("bills", id="invoice")).scorer == "answer_ranker"
            assert await service.add("tickets", [("one", "two")]) == Added(1, 0, 0)
            assert await service.remove("tickets", ["none"]) == 0
            assert await service.replace("faq", []) == 0
            assert (await service.status("faq"))["refit"]["state"] in ("idle", "waiting")
            assert await service.search(["bills"], top=2) == fitted.search(["bills"], top=2)
            await service.feedback("one", TEXTS[0], False)
            assert await service.reload() == {}

    asyncio.run(work())


def test_what_is_refused_has_its_code(url: str) -> None:
    with Client(url, key=KEY) as service:
        with pytest.raises(ServiceError, match="unknown") as found:
            service.rank("a", ["b"], system="none")
        assert (found.value.status, found.value.code) == (404, "unknown")
        with refused("wrong_type", "expected"):
            service.rank("a", "b")
    with Client(url) as service, pytest.raises(ServiceError, match="key") as found:
        service.systems()
    assert found.value.code == "wrong_key"
    with Client("http://127.0.0.1:9") as service, pytest.raises(ServiceError, match="does not answer"):
        service.systems()


def test_it_comes_again_when_told_so() -> None:
    answers = [
        httpx.Response(503, headers={"retry-after": "0"}, json={"error": {"code": "overloaded", "message": "later"}}),
        httpx.Response(200, json={"scores": [0.5]}),
    ]
    with Client(transport=httpx.MockTransport(lambda _: answers.pop(0))) as service:
        assert service.score("a", "b") == 0.5
    busy = httpx.Response(503, headers={"retry-after": "0"}, json={"error": {"code": "overloaded", "message": "later"}})
    with Client(transport=httpx.MockTransport(lambda _: busy)) as service, pytest.raises(ServiceError, match="later"):
        service.score("a", "b")
    odd = httpx.Response(200, text="<html>")
    with (
        Client(transport=httpx.MockTransport(lambda _: odd)) as service,
        pytest.raises(ServiceError, match="cannot be"),
    ):
        service.score("a", "b")


@pytest.mark.parametrize("made", [tensor_like(), lexical_like(), path_like(), of_words(["a"], [])])
def test_an_explanation_comes_back_as_it_was(made: Explanation) -> None:
    plain = made.to_dict(grid=True)
    again = Explanation.from_dict(plain)
    assert again.to_dict(grid=True) == plain
    assert len(again.to_html()) == len(made.to_html())


def test_what_describes_no_explanation_is_one_line() -> None:
    for plain in ({}, {"channels": 3}, {**tensor_like().to_dict(), "grid": [1]}):
        with refused("wrong_format", "to_dict"):
            Explanation.from_dict(plain)
