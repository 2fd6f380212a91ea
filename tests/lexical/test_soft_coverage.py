from __future__ import annotations

import math

import numpy as np
import pytest

from matchloom.lexical import SoftCoverage
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors
from matchloom.types import Pair

WORDS = [f"w{i}" for i in range(30)]
VECTORS = WordVectors(WORDS[:20], np.random.default_rng(0).normal(0.5, 1, size=(20, 5)).astype(np.float32))
SPACE = Tokenizer("whitespace")


def cosine(a: str, b: str) -> float:
    if a == b:
        return 1.0
    if a not in VECTORS.index or b not in VECTORS.index:
        return 0.0
    u, v = (VECTORS.matrix[VECTORS.index[w]].astype(float) for w in (a, b))
    return float(u @ v / math.sqrt(u @ u) / math.sqrt(v @ v))


def slow_score(query: str, text: str, texts: list[str]) -> float:
    total = covered = 0.0
    for word in query.split():
        frequency = sum(word in other.split() for other in texts)
        idf = math.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
        total += idf
        covered += idf * max([0.0, *(cosine(word, other) for other in text.split())])
    return covered / total if total else 0.0


def test_equals_a_slow_loop() -> None:
    generator = np.random.default_rng(1)
    texts = [" ".join(generator.choice(WORDS, generator.integers(0, 9))) for _ in range(40)]
    queries = [" ".join(generator.choice(WORDS, generator.integers(0, 6))) for _ in range(10)]
    pairs = [Pair(query, text) for query in queries for text in texts]
    scores = SoftCoverage.fit(texts, VECTORS, tokenizer=SPACE).score(pairs)
    assert scores.tolist() == pytest.approx([slow_score(p.query, p.text, texts) for p in pairs], abs=1e-6)
    assert np.unique(scores).size > 100


def test_an_equal_word_counts_one_without_a_vector() -> None:
    scorer = SoftCoverage.fit(["x"], VECTORS, tokenizer=SPACE)
    assert scorer.score([Pair("w25", "w0 w25"), Pair("w25", "w0 w26"), Pair("w3", "w3")]).tolist() == [1, 0, 1]


def test_stop_words_and_punctuation_of_the_query_ask_for_nothing() -> None:
    pairs = [Pair("what is w1 ?", "w2 w3 w4 w5"), Pair("w1", "w2 w3 w4 w5"), Pair("who ?", "who ?")]
    scores = SoftCoverage.fit(["x"], VECTORS, tokenizer=SPACE).score(pairs)
    assert scores[0] == scores[1] > 0
    assert scores[2] == 0
    kept = SoftCoverage.fit(["x"], VECTORS, tokenizer=SPACE, stop_words=False).score(pairs)
    assert kept[0] == pytest.approx(kept[1] / 4)
    assert kept[2] == 1


def test_trace_names_the_nearest_word() -> None:
    scorer = SoftCoverage.fit(["w1 w2", "w3"], VECTORS, tokenizer=SPACE)
    nearest = max(range(2, 6), key=lambda j: cosine("w1", f"w{j}"))
    left, right, trace = scorer.trace("the w1 w25", "w2 w3 w4 w5 w25 w25")
    assert left == ["the", "w1", "w25"]
    assert [(s.left, right[s.right], s.right) for s in trace.signals] == [
        (1, f"w{nearest}", nearest - 2),
        (2, "w25", 4),
    ]
    assert trace.signals[0].value == pytest.approx(cosine("w1", f"w{nearest}"), abs=1e-6)
    assert trace.grid[0, 1, 1] == pytest.approx(max(0.0, cosine("w1", "w3")), abs=1e-6)
    assert not trace.grid[0, 0].any()


def test_long_texts_are_scored_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [Pair("w1 w2 w3 w4 w5 w25", "w6 w7 w8 w9 w10")]
    whole = SoftCoverage.fit(["x"], VECTORS, tokenizer=SPACE).score(pairs)
    monkeypatch.setattr("matchloom.lexical.soft_coverage._BLOCK", 7)
    assert SoftCoverage.fit(["x"], VECTORS, tokenizer=SPACE).score(pairs) == pytest.approx(whole, abs=1e-6)


def test_zero_vectors_are_no_vectors() -> None:
    zeros = WordVectors(["a", "b"], np.zeros((2, 3), np.float32))
    scores = SoftCoverage.fit(["a b"], zeros).score([Pair("b", "a"), Pair("b", "b")])
    assert scores.tolist() == [0, 1]
