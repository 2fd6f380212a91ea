"""The rerank, models and embeddings APIs of others: their shapes, the library's order."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI

from matchloom.calibration import relevance
from matchloom.fitting import Fitted
from matchloom.lexical import fit_scorer
from matchloom.matcher import Matcher
from matchloom.search.collection import Collection
from matchloom.service.limits import Limits
from matchloom.types import Pair
from tests.service.making import PAIRS, TEXTS, ask, code_of, make_app

ROUTES = ["/rerank", "/v1/rerank", "/v2/rerank"]
QUERY = "I forgot my password"
DOCUMENTS = ["Ask sales for an invoice.", "Choose Reset password in Settings.", "A parcel takes two days.", ""]


@pytest.mark.parametrize("path", ROUTES)
def test_documents_come_back_best_first_as_the_library_scores_them(app: FastAPI, served: Path, path: str) -> None:
    scorer = Fitted.load(served / "faq")
    scores = scorer.score([Pair(QUERY, text) for text in DOCUMENTS])
    found = ask(app, path, {"query": QUERY, "documents": DOCUMENTS, "model": "rerank-v3.5"}).json()
    assert found.keys() == {"id", "object", "model", "results", "usage", "meta"}
    assert found["model"] == "faq", "a name that is not served stands for the first system"
    assert found["usage"]["total_tokens"] == sum(len(text.split()) for text in [QUERY, *DOCUMENTS])
    assert [one["index"] for one in found["results"]] == np.argsort(-scores).tolist()
    assert found["results"][0] == {"index": 1, "relevance_score": pytest.approx(relevance(scorer, scores)[1])}
    assert all(0 <= one["relevance_score"] <= 1 for one in found["results"])


@pytest.mark.parametrize(("top", "count"), [({}, 4), ({"top_n": None}, 4), ({"top_n": 0}, 4), ({"top_n": 2}, 2)])
def test_every_document_comes_back_unless_some_are_asked_for(app: FastAPI, top: dict[str, int], count: int) -> None:
    found = ask(app, "/v1/rerank", {"query": QUERY, "documents": DOCUMENTS, **top}).json()
    assert len(found["results"]) == count


def test_objects_are_read_and_given_back_whole(app: FastAPI) -> None:
    documents = [{"text": "Ask sales.", "url": "u"}, {"title": "Reset", "body": "your password", "n": 3}, "a loom"]
    body = {"query": QUERY, "documents": documents, "return_documents": True, "max_tokens_per_doc": 3}
    best, *_ = ask(app, "/v2/rerank", body).json()["results"]
    assert (best["index"], best["document"]) == (1, documents[1])
    fields = {**body, "documents": [{"title": "my password", "body": "x"}, {"title": "password", "body": "x"}]}
    first, second = ask(app, "/v1/rerank", {**fields, "rank_fields": ["body"]}).json()["results"]
    assert first["relevance_score"] == second["relevance_score"], "only the field that was named is read"


def test_texts_are_answered_as_text_embeddings_inference_does(app: FastAPI) -> None:
    body = {"query": QUERY, "texts": DOCUMENTS, "truncate": True}
    plain = ask(app, "/rerank", body).json()
    assert [set(one) for one in plain] == [{"index", "score"}] * 4
    assert all(0 <= one["score"] <= 1 for one in plain)
    raw = ask(app, "/rerank", {**body, "return_text": True, "raw_scores": True}).json()
    assert [one["index"] for one in raw] == [one["index"] for one in plain]
    assert [one["text"] for one in raw] == [DOCUMENTS[one["index"]] for one in raw]
    assert raw[-1]["score"] < 0


@pytest.mark.parametrize("model", ["faq", "mv", "bm25", "tickets"])
def test_spans_are_code_points_of_the_words_that_spoke_for_a_document(app: FastAPI, model: str) -> None:
    text = "Zur Seite 🔒 naïve «password» – dort"
    body = {"query": QUERY, "documents": [text, "nothing"], "model": model, "explain": True}
    found = ask(app, "/rerank", body).json()
    (own,) = [one for one in found["results"] if one["index"] == 0]
    assert found["model"] == model
    marked = [text[span["start"] : span["end"]] for span in own["relevant_spans"]]
    assert all(span["contribution"] > 0 for span in own["relevant_spans"])
    if model != "tickets":  # whose weights were drawn
        assert any("password" in one for one in marked), marked


def test_relevance_keeps_the_order_and_stays_between_0_and_1() -> None:
    bm25, overlap = fit_scorer("bm25", TEXTS), fit_scorer("overlap", TEXTS)
    pairs = [Pair(QUERY, text) for text in [*TEXTS, ""]]
    for scorer in (bm25, overlap, fit_scorer("random", []), Collection.fit(PAIRS)):
        scores = scorer.score(pairs)
        found = relevance(scorer, scores)
        assert ((found >= 0) & (found <= 1)).all()
        assert (np.argsort(-found, kind="stable") == np.argsort(-scores, kind="stable")).all()
    assert relevance(bm25, bm25.score([Pair("zzz", "loom")]))[0] == 0
    huge = np.array([-1e30, -50, 0, 50, 1e30], np.float32)
    assert relevance(Collection.fit(PAIRS), huge).tolist() == pytest.approx([0, 0, 0.5, 1, 1])


def test_a_baseline_that_knows_only_its_own_answers_leaves_the_ranking_to_bm25(tmp_path: Path) -> None:
    Collection.fit(PAIRS, baseline="bm25_stemmed").save(tmp_path / "words")
    app = make_app(tmp_path, "words")
    found = ask(app, "/v1/rerank", {"query": QUERY, "documents": DOCUMENTS}).json()
    assert (found["model"], found["results"][0]["index"]) == ("bm25", 1)


@pytest.mark.parametrize("body", [{"query": QUERY}, {"documents": ["a"]}, {"query": 3, "documents": ["a"]}, {}])
def test_a_refusal_says_why_where_other_clients_look(app: FastAPI, body: dict[str, object]) -> None:
    response = ask(app, "/v1/rerank", body)
    assert code_of(response) == (422, "invalid")
    assert response.json()["detail"] == response.json()["error"]["message"]


def test_limits_and_keys_hold_on_every_route(served: Path) -> None:
    app = make_app(served, "faq", key="k" * 16, limits=Limits(texts=2, words=5))
    for path in ROUTES:
        assert code_of(ask(app, path, {"query": "a", "documents": ["b"]})) == (401, "wrong_key")
        known = {"authorization": "Bearer " + "k" * 16}
        assert code_of(ask(app, path, {"query": "a", "documents": ["b"] * 3}, **known)) == (422, "too_many_texts")
        assert code_of(ask(app, path, {"query": "a", "texts": ["b " * 6]}, **known)) == (422, "too_many_words")
        assert ask(app, path, {"query": "a", "documents": []}, **known).json()["results"] == []
    assert code_of(ask(app, "/v1/models")) == (401, "wrong_key")


def test_models_are_the_systems(app: FastAPI) -> None:
    found = ask(app, "/v1/models").json()
    assert [one["id"] for one in found["data"]] == ["faq", "mv", "tickets", "bm25"]
    assert {one["object"] for one in found["data"]} == {"model"}


def test_embeddings_are_the_matcher_s_vectors(app: FastAPI, served: Path) -> None:
    expected = Matcher.load(served / "lstm").vectors(TEXTS)
    plain = ask(app, "/v1/embeddings", {"input": TEXTS, "model": "text-embedding-3-small", "user": "x"}).json()
    assert plain["model"] == "tickets", "the first system that has sentence vectors"
    assert np.array_equal(np.array([one["embedding"] for one in plain["data"]], np.float32), expected)
    packed = ask(app, "/v1/embeddings", {"input": TEXTS[0], "encoding_format": "base64"}).json()["data"]
    assert np.array_equal(np.frombuffer(base64.b64decode(packed[0]["embedding"]), "<f4"), expected[0])
    assert code_of(ask(app, "/v1/embeddings", {"input": "a", "model": "faq"})) == (409, "no_vectors")
    assert code_of(ask(app, "/v1/embeddings", {"input": [1, 2]})) == (422, "invalid")
