from __future__ import annotations

import math

import bm25s
import numpy as np
import pytest
import Stemmer
from bm25s.stopwords import STOPWORDS_EN_PLUS

from matchloom.lexical import BM25
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair
from tests.refusing import refused

WORDS = ["the", "of", "who", "weave", "weaves", "weaving", "cloth", "cloths", "mill", "mills", "corn", "loom", "?"]


def random_texts(count: int, seed: int) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, generator.integers(1, 12))) for _ in range(count)]


def by_bm25s(texts: list[list[str]], queries: list[list[str]], k1: float, b: float) -> np.ndarray:
    index = bm25s.BM25(method="lucene", k1=k1, b=b)
    index.index(texts, show_progress=False)
    return np.stack([index.get_scores(query) for query in queries])


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (1.5, 0.0), (0.9, 0.4)])
def test_equals_bm25s(k1: float, b: float) -> None:
    texts, queries = random_texts(40, 1), random_texts(15, 2)
    scorer = BM25.fit(texts, tokenizer=Tokenizer("whitespace"), k1=k1, b=b)
    ours = scorer.score([Pair(query, text) for query in queries for text in texts]).reshape(15, 40)
    theirs = by_bm25s([text.split() for text in texts], [query.split() for query in queries], k1, b)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert ours.max() > 1


def test_stemmed_equals_bm25s_on_stems_without_stop_words() -> None:
    texts, queries = random_texts(40, 3), random_texts(15, 4)
    stemmer = Stemmer.Stemmer("english")

    def prepare(text: str) -> list[str]:
        return stemmer.stemWords([w for w in text.split() if w not in STOPWORDS_EN_PLUS and w.isalnum()])

    scorer = BM25.fit(texts, tokenizer=Tokenizer("whitespace"), stem=True, stop_words=True)
    ours = scorer.score([Pair(query, text) for query in queries for text in texts]).reshape(15, 40)
    theirs = by_bm25s([prepare(text) for text in texts], [prepare(query) for query in queries], 1.2, 0.75)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_text_outside_the_collection() -> None:
    scorer = BM25.fit(["loom thread", "mill corn corn corn"])  # mean length 3
    score = scorer.score([Pair("silk loom", "silk silk loom loom loom loom")])[0]
    norm = 1.2 * (0.25 + 0.75 * 6 / 3)
    silk = math.log(1 + 2.5 / 0.5) * 2 / (2 + norm)
    loom = math.log(1 + 1.5 / 1.5) * 4 / (4 + norm)
    assert score == pytest.approx(silk + loom)


def test_trace_parts_a_term_among_its_places() -> None:
    scorer = BM25.fit(["looms weave", "mills grind"], stem=True, stop_words=True)
    left, right, trace = scorer.trace("Who was weaving?", "looms weave, weavers weave")
    assert left == ["who", "was", "weaving"]
    assert right == ["looms", "weave", "weavers", "weave"]
    assert [(s.left, s.right) for s in trace.signals] == [(2, 1), (2, 3)]
    assert trace.signals[0].contribution == trace.signals[1].contribution == pytest.approx(trace.score / 2)
    assert trace.signals[0].value == pytest.approx(math.log(1 + 1.5 / 1.5))
    assert trace.grid[0].nonzero()[1].tolist() == [1, 3]


def test_chinese_words() -> None:
    texts = ["我想买保险", "天气很好"]
    scores = BM25.fit(texts, tokenizer=Tokenizer("chinese")).score([Pair("保险多少钱", text) for text in texts])
    assert scores[0] > scores[1] == 0


@pytest.mark.parametrize(("k1", "b"), [(-1.0, 0.5), (1.2, 1.5), (float("nan"), 0.5)])
def test_impossible_settings(k1: float, b: float) -> None:
    with refused("bad_value", "between", "0", "1"):
        BM25.fit(["a"], k1=k1, b=b)
