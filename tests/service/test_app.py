"""What the service answers is what the library answers, to the last digit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from matchloom import explain
from matchloom.fitting import Fitted
from matchloom.matcher import Matcher
from matchloom.search.lance.collection import LanceCollection
from matchloom.service.limits import Limits
from matchloom.types import Pair
from tests.service.making import TEXTS, ask, code_of, make_app, within

QUESTIONS = ["I forgot my pasword", "send me a bill", "delete everything", "الدفع", "", "   ", "zzz qqq"]


def test_health_ready_and_systems(app: FastAPI) -> None:
    assert ask(app, "/health").json() == {"status": "alive"}
    assert ask(app, "/ready").json() == {"status": "ready"}
    found = {one["name"]: one for one in ask(app, "/v1/systems").json()["systems"]}
    assert list(found) == ["faq", "mv", "tickets"]
    assert [one["kind"] for one in found.values()] == ["fitted", "matcher", "archive"]
    assert [one["searches"] for one in found.values()] == [True, False, True]
    assert not any(one["writable"] for one in found.values())
    assert found["tickets"]["size"] == 8


def test_not_ready_says_when_to_come_again(served: Path) -> None:
    app = make_app(served, "mv")

    async def work() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            asked = {"query": "a", "candidates": ["b"]}
            return [await client.get("/health"), await client.get("/ready"), await client.post("/v1/rank", json=asked)]

    alive, ready, rank = asyncio.run(work())
    assert alive.status_code == 200
    for response in (ready, rank):
        assert code_of(response) == (503, "loading")
        assert response.headers["retry-after"] == "1"


def test_scores_are_the_library_s(app: FastAPI, served: Path) -> None:
    pairs = [Pair(question, text) for question in QUESTIONS for text in TEXTS]
    plain = [{"query": pair.query, "text": pair.text} for pair in pairs]
    for name, scorer in (("mv", Matcher.load(served / "mv")), ("faq", Fitted.load(served / "faq"))):
        found = ask(app, "/v1/score", {"system": name, "pairs": plain}).json()
        assert np.array_equal(np.array(found["scores"], np.float32), scorer.score(pairs))
    assert ask(app, "/v1/score", {"system": "mv", "pairs": []}).json()["scores"] == []


def test_many_clients_get_their_own_scores(app: FastAPI, served: Path) -> None:
    pairs = [Pair(question, text) for question in QUESTIONS for text in TEXTS]
    expected = Matcher.load(served / "mv").score(pairs)

    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        bodies = [{"system": "mv", "pairs": [{"query": pair.query, "text": pair.text}]} for pair in pairs]
        return list(await asyncio.gather(*(client.post("/v1/score", json=body) for body in bodies)))

    service = app.state.service
    before = service.metrics.registry.get_sample_value("matchloom_batch_requests_count") or 0
    found = np.array([response.json()["scores"][0] for response in within(app, work)], np.float32)
    assert np.array_equal(found, expected)
    calls = service.metrics.registry.get_sample_value("matchloom_batch_requests_count") - before
    assert calls < len(pairs) / 2, "requests that came together were scored together"


def test_rankings_are_the_library_s(app: FastAPI, served: Path) -> None:
    matcher = Matcher.load(served / "mv")
    for question in QUESTIONS:
        for _ in range(2):  # the second time the candidates are encoded already
            body = {"system": "mv", "query": question, "candidates": TEXTS, "top": 4}
            found = ask(app, "/v1/rank", body).json()["ranking"]
            assert [(one["index"], one["score"], one["text"]) for one in found] == [
                tuple(one) for one in matcher.rank(question, TEXTS, top=4)
            ]
    assert ask(app, "/v1/rank", {"system": "mv", "query": "a", "candidates": []}).json()["ranking"] == []


def test_bm25_ranks_given_candidates(app: FastAPI) -> None:
    found = ask(app, "/v1/rank", {"system": "bm25", "query": "reset passwords", "candidates": TEXTS}).json()
    assert (found["system"], found["scorer"]) == ("bm25", "bm25_stemmed")
    assert found["ranking"][0]["text"].startswith("Open Settings")


def test_searches_are_the_library_s(app: FastAPI, served: Path) -> None:
    fitted, index = Fitted.load(served / "faq"), LanceCollection.open(served / "tickets")
    for question in QUESTIONS:
        found = ask(app, "/v1/search", {"system": "faq", "question": question, "top": 3}).json()
        archived = ask(app, "/v1/search", {"system": "tickets", "question": question, "top": 3}).json()
        if not question.strip():
            assert found["answers"] == archived["answers"] == []
            continue
        expected = fitted.rank(question, top=3)
        assert [(one["id"], one["score"], one["probability"]) for one in found["answers"]] == [
            (one.id, one.score, one.probability) for one in expected
        ]
        assert found["known"] == fitted.known(question)
        assert [(one["id"], one["score"], one["similarity"], one["match"]) for one in archived["answers"]] == [
            (one.id, one.score, one.similarity, one.match) for one in index.search(question, top=3)
        ]


@pytest.mark.parametrize("system", ["faq", "tickets"])
@pytest.mark.parametrize("by", ["bm25", "mv"])
def test_another_ranks_the_same_answers(app: FastAPI, system: str, by: str) -> None:
    body = {"system": system, "question": "reset passwords", "top": 4, "by": by}
    found = ask(app, "/v1/search", body).json()
    assert found["by"] == by
    scores = [one["score"] for one in found["answers"]]
    assert scores == sorted(scores, reverse=True)
    if by == "bm25":
        assert found["answers"][0]["id"] == "password"
    one = found["answers"][0]
    told = ask(app, "/v1/explain", {"query": body["question"], "id": one["id"], "system": system, "by": by}).json()
    assert told["explanation"]["score"] == pytest.approx(one["score"], rel=1e-4, abs=1e-6)


def test_explanations_are_the_library_s(app: FastAPI, served: Path) -> None:
    query, text = "I forgot my password", TEXTS[0]
    body = {"system": "mv", "query": query, "text": text}
    expected = explain(Matcher.load(served / "mv"), query, text)
    told = ask(app, "/v1/explain", body).json()
    assert told["explanation"] == expected.to_dict(grid=True)
    assert set(told["because"]) <= set(expected.query)
    html = ask(app, "/v1/explain", {**body, "form": "html"}).json()["html"]
    assert 'class="texts"' in html
    assert " style=" not in html, "the page's policy allows none"
    by_id = ask(app, "/v1/explain", {"system": "faq", "query": query, "id": "password"}).json()
    told, whole = by_id["explanation"], explain(Fitted.load(served / "faq"), query, text).to_dict(grid=True)
    assert {name: told[name] for name in ("score", "signals", "grid")} == {
        name: whole[name] for name in ("score", "signals", "grid")
    }
    sections = [(one["name"], one["source"]["text"]) for one in told["text"]["sections"]]
    assert sections == [("known question", "I forgot my password"), ("answer", text)], "in the user's own words"
    (first, *_) = LanceCollection.open(served / "tickets").search(query, top=3, explain=True)
    archived = ask(app, "/v1/explain", {"system": "tickets", "query": query, "id": first.id}).json()
    assert first.explanation is not None
    assert archived["explanation"] == first.explanation.to_dict(grid=True)
    bm25 = {"system": "bm25", "query": query, "text": text, "candidates": TEXTS}
    assert ask(app, "/v1/explain", bm25).json()["explanation"]["scorer"] == "bm25_stemmed"


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/v1/rank", {"system": "none", "query": "a", "candidates": []}, (404, "unknown")),
        ("/v1/rank", {"system": "../mv", "query": "a", "candidates": []}, (404, "unknown")),
        ("/v1/search", {"system": "mv", "question": "a"}, (422, "cannot_search")),
        ("/v1/search", {"question": "a", "by": "none"}, (404, "unknown")),
        ("/v1/explain", {"system": "faq", "query": "a", "id": "none"}, (404, "unknown")),
        ("/v1/explain", {"system": "tickets", "query": "a", "id": "none"}, (404, "unknown")),
        ("/v1/rank", {"query": "a"}, (422, "invalid")),
        ("/v1/rank", {"query": 3, "candidates": []}, (422, "invalid")),
        ("/v1/rank", {"query": "a", "candidates": ["b"], "topp": 3}, (422, "invalid")),
        ("/v1/search", {"question": "a", "top": 0}, (422, "invalid")),
        ("/v1/search", {"question": "a", "top": 101}, (422, "invalid")),
        ("/v1/search", {"question": "a", "top": True}, (422, "invalid")),
        ("/v1/search", {"question": "a", "top": 1.5}, (422, "invalid")),
        ("/v1/archives/tickets/pairs", {"pairs": []}, (403, "read_only")),
        ("/v1/archives/..%2f..%2fetc/pairs", {"pairs": []}, (404, "unknown")),
        ("/v1/feedback", {"question": "a", "text": "b", "label": 1}, (403, "no_feedback")),
        ("/v1/none", {}, (404, "unknown")),
        ("/static/..%2fapp.py", None, (404, "unknown")),
        ("/v1/rank", None, (405, "wrong_method")),
    ],
)
def test_refusals(app: FastAPI, path: str, body: object, expected: tuple[int, str]) -> None:
    assert code_of(ask(app, path, body)) == expected


def test_a_map_that_would_fill_the_memory_is_refused(served: Path) -> None:
    app, wider = (make_app(served, "faq", "tickets", limits=Limits(cells=cells)) for cells in (20, 1000))
    long = {"query": "word " * 5, "text": "word " * 5}
    assert code_of(ask(app, "/v1/explain", long)) == (422, "too_many_words")
    for system in ("faq", "tickets"):
        found = ask(app, "/v1/search", {"system": system, "question": "reset my password"}).json()["answers"][0]
        by_id = {"system": system, "query": "reset my password", "id": found["id"]}
        assert code_of(ask(app, "/v1/explain", by_id)) == (422, "too_many_words")
        assert code_of(ask(app, "/v1/explain", {**by_id, "form": "html"})) == (422, "too_many_words")
        assert ask(wider, "/v1/explain", {**by_id, "form": "html"}).status_code == 200


def test_metrics_count(app: FastAPI) -> None:
    ask(app, "/v1/search", {"question": "password"})
    page = ask(app, "/metrics").text
    assert 'matchloom_requests_total{route="/v1/search",status="200"}' in page
    assert "matchloom_waiting_requests 0.0" in page
    assert 'matchloom_rejected_total{code="' in page


def test_a_search_explains_its_best_answers_within_one_budget_and_sends_no_maps(served: Path) -> None:
    app = make_app(served, "faq", "tickets", limits=Limits(cells=30_000))
    for system in ("faq", "tickets"):
        asked = {"system": system, "top": 100, "explain": True}
        question = "how do I reset my password for the account with an invoice " * 3
        (one,) = ask(app, "/v1/search", {**asked, "questions": [question]}).json()["results"]
        many = ask(app, "/v1/search", {**asked, "questions": [question] * 20}).json()["results"]
        told = [hit["explanation"] for found in [one] for hit in found["answers"]]
        explained = [why is not None for why in told]
        assert explained[0], "the best is explained"
        assert explained == sorted(explained, reverse=True) or not all(explained)
        assert not any("grid" in why for why in told if why is not None)
        reasons = [hit["explanation"] for found in many for hit in found["answers"] if hit["explanation"]]
        cells = sum(len(w["query"]["words"]) * len(w["text"]["words"]) * len(w["channels"]) for w in reasons)
        assert 0 < cells <= 2 * 30_000, "the budget is one for all questions"
