"""The cosine of two sentence vectors, by words where they can be told."""

from __future__ import annotations

import numpy as np
import pytest

from matchloom.matcher import Matcher
from matchloom.search.lance.similarity import SentenceSimilarity
from matchloom.search.lance.table import Vectors, unit
from tests.search.lance.making import made_matcher


class Sums:
    """Sentence vectors that are sums of what words add, and of a constant."""

    tokenizer = staticmethod(str.split)

    def vector_parts(self, text: str) -> Vectors:
        rng = {word: np.random.default_rng(len(word) * 31 + ord(word[0])) for word in text.split()}
        return np.array([rng[word].normal(size=5) for word in text.split()], np.float32)

    def vectors(self, texts: list[str]) -> Vectors:
        return np.array([self.vector_parts(text).sum(0) + 0.1 for text in texts], np.float32)


def test_a_sum_over_words_is_taken_apart() -> None:
    sums = Sums()
    left, right, trace = SentenceSimilarity(sums).trace("red loom", "a blue loom")  # type: ignore[arg-type]
    assert (left, right) == (["red", "loom"], ["a", "blue", "loom"])
    v, w = sums.vectors(["red loom", "a blue loom"]).astype(float)
    assert trace.score == pytest.approx(v @ w / np.linalg.norm(v) / np.linalg.norm(w))
    expected = sums.vector_parts("loom")[0] @ sums.vector_parts("loom")[0] / np.linalg.norm(v) / np.linalg.norm(w)
    assert trace.grid[0, 1, 2] == pytest.approx(expected)
    assert len(trace.signals) == 6
    assert sum(s.contribution for s in trace.signals) + trace.residual == pytest.approx(trace.score)


def test_a_model_that_cannot_say_gives_one_component() -> None:
    matcher: Matcher = made_matcher()
    left, right, trace = SentenceSimilarity(matcher).trace("baden kelar", "")
    assert (left, right) == (["baden", "kelar"], ["(no words)"])
    v, w = unit(matcher.vectors(["baden kelar", ""]))
    assert trace.score == pytest.approx(float(v @ w), abs=1e-6)
    (component,) = trace.components
    assert (component.name, component.contribution) == ("similarity of sentence vectors", trace.score)
    assert not trace.signals
