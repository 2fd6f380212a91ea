"""Clients of other services, where they are installed, against a running service: only the address is ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from matchloom.matcher import Matcher
from tests.service.making import TEXTS, make_app, make_fitted_folder, make_matcher, running

KEY = "a-key-of-sixteen-letters"
QUERY = "I forgot my password"
DOCUMENTS = ["Ask sales for an invoice.", "Choose Reset password in Settings.", "A parcel takes two days."]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clients")
    make_fitted_folder(folder / "faq")
    make_matcher("lstm_rnn").save(folder / "lstm")
    return folder


@pytest.fixture(scope="module")
def url(served: Path) -> Iterator[str]:
    with running(make_app(served, "faq", "lstm", key=KEY)) as address:
        yield address


def test_cohere(url: str) -> None:
    cohere = pytest.importorskip("cohere")
    first = cohere.Client(KEY, base_url=url).rerank(
        query=QUERY,
        documents=[{"text": DOCUMENTS[0]}, DOCUMENTS[1], DOCUMENTS[2]],
        model="rerank-v3.5",
        top_n=2,
        return_documents=True,
    )
    assert [one.index for one in first.results][0] == 1  # noqa: RUF015
    assert len(first.results) == 2
    assert first.results[0].document.text == DOCUMENTS[1]
    second = cohere.ClientV2(KEY, base_url=url).rerank(query=QUERY, documents=DOCUMENTS, model="faq")
    assert sorted(one.index for one in second.results) == [0, 1, 2]
    assert 1 >= second.results[0].relevance_score >= second.results[-1].relevance_score >= 0
    with pytest.raises(cohere.core.ApiError) as refused:
        cohere.ClientV2("a-wrong-key-of-letters", base_url=url).rerank(query=QUERY, documents=DOCUMENTS, model="faq")
    assert refused.value.status_code == 401
    assert refused.value.body["detail"]


@pytest.mark.parametrize("provider", ["cohere", "jina", "text-embeddings-inference"])
def test_rerankers(url: str, provider: str) -> None:
    rankers = pytest.importorskip("rerankers.models.api_rankers")
    path = "/rerank" if provider == "text-embeddings-inference" else "/v1/rerank"
    ranker = rankers.APIRanker("faq", KEY, provider, url=url + path)
    found = ranker.rank(QUERY, DOCUMENTS)
    assert found.top_k(1)[0].document.text == DOCUMENTS[1]
    assert len(found.results) == 3


def test_openai(url: str, served: Path) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0)
    assert [one.id for one in client.models.list()] == ["faq", "lstm", "bm25"]
    found = client.embeddings.create(input=TEXTS, model="lstm")
    expected = Matcher.load(served / "lstm").vectors(TEXTS)
    assert np.allclose([one.embedding for one in found.data], expected)
    with pytest.raises(openai.ConflictError):
        client.embeddings.create(input=TEXTS, model="faq")
