"""What all routes have in common: one name for the question, reasons, plain words, keys that are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from matchloom.service import create_app
from matchloom.service.keys import Keys
from tests.service.making import TEXTS, ask, make_app, within

QUERY = "I forgot my password"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/search", {}),
        ("/v1/rank", {"candidates": TEXTS}),
        ("/v1/explain", {"text": TEXTS[0]}),
        ("/rerank", {"documents": TEXTS}),
    ],
)
def test_a_question_has_one_name_and_the_old_one_is_taken(app: FastAPI, path: str, body: dict[str, Any]) -> None:
    found = [ask(app, path, {**body, name: QUERY}) for name in ("question", "query")]
    assert [one.status_code for one in found] == [200, 200]
    plain = [{**one.json(), "id": ""} for one in found]
    assert plain[0] == plain[1]


def test_many_questions_have_one_name_too(app: FastAPI) -> None:
    found = [ask(app, "/v1/search", {name: [QUERY, "bills"], "top": 1}).json() for name in ("questions", "queries")]
    assert found[0] == found[1]
    assert len(found[0]["results"]) == 2


@pytest.mark.parametrize("by", [None, "bm25", "mv"])
@pytest.mark.parametrize("system", ["faq", "tickets"])
def test_reasons_are_given_whatever_ranks(app: FastAPI, system: str, by: str | None) -> None:
    found = ask(app, "/v1/search", {"question": QUERY, "system": system, "by": by, "top": 2, "explain": True}).json()
    assert found["answers"]
    assert all(one["explanation"]["signals"] is not None for one in found["answers"])


@pytest.mark.parametrize("system", ["faq", "mv", "bm25"])
def test_rankings_say_why(app: FastAPI, system: str) -> None:
    body = {"question": QUERY, "system": system, "candidates": TEXTS, "top": 3, "explain": True}
    found = ask(app, "/v1/rank", body).json()["ranking"]
    for one in found:
        assert one["explanation"]["score"] == pytest.approx(one["score"], rel=1e-4, abs=1e-4)
    plain = ask(app, "/v1/rank", {**body, "explain": False}).json()["ranking"]
    assert [one["explanation"] for one in plain] == [None] * 3


def test_everything_is_reloaded_without_a_body(served: Path) -> None:
    app = make_app(served, "faq")

    async def work(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/v1/reload")

    assert within(app, work).json() == {"reloaded": ["faq"], "refused": {}}


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/search", {}, "question: is missing"),
        ("/v1/search", {"question": 3}, "question: expected a text"),
        ("/v1/search", {"question": "a", "top": 0}, "top: expected 1 or more"),
        ("/v1/search", {"question": "a", "tops": 3}, "tops: is not a field of this request"),
        ("/v1/search", {"questions": "a"}, "questions: expected a list"),
        ("/v1/rank", {"question": "a", "candidates": ["b", 3]}, "candidates.1: expected a text"),
        ("/rerank", {"query": "a", "documents": [3]}, "documents.0: expected a text or an object"),
        ("/rerank", {"query": "a"}, "documents: is missing"),
        ("/v1/embeddings", {"input": 3}, "input: expected a list or a text"),
        ("/v1/explain", {"question": "a", "form": "pdf"}, "form: expected 'json' or 'html'"),
    ],
)
def test_what_is_wrong_is_told_in_plain_words(app: FastAPI, path: str, body: dict[str, Any], words: str) -> None:
    assert ask(app, path, body).json()["error"]["message"].startswith(words)


def test_the_description_says_which_keys_are_needed() -> None:
    open_to_all = create_app([]).openapi()
    assert set(open_to_all["components"]["securitySchemes"]) == {"bearer", "api_key"}
    assert not any("security" in told for methods in open_to_all["paths"].values() for told in methods.values())
    guarded = create_app([], keys=Keys(["k" * 16])).openapi()["paths"]
    assert guarded["/v1/search"]["post"]["security"] == [{"bearer": []}, {"api_key": []}]
    assert "security" not in guarded["/health"]["get"]


def test_the_page_of_the_api_needs_no_other_site(app: FastAPI) -> None:
    page, script = ask(app, "/docs").text, ask(app, "/static/docs.js").text
    assert "/static/docs.js" in page
    assert "http" not in (page + script).replace("http-equiv", "")
