"""IDF overlap: which share of the query's words does the text hold, rare words counting more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from matchloom.basics.progress import track
from matchloom.lexical.exact_match import exact_match_trace
from matchloom.lexical.statistics import ENGLISH, Words, WordStatistics
from matchloom.types import Pair, Scores, Trace


class Overlap:
    """Between 0 (no query word is in the text) and 1 (all are).

    >>> scorer = Overlap.fit(["a loom weaves cloth", "a mill grinds corn"])
    >>> scorer.score([Pair("loom weaves", "a loom weaves cloth"), Pair("loom", "a mill grinds corn")])
    array([1., 0.], dtype=float32)
    """

    bounds: tuple[float, float] = (0.0, 1.0)

    def __init__(self, collection: WordStatistics, *, tokenizer: Words = ENGLISH) -> None:
        self.name = "overlap"
        self.collection = collection
        self.tokenizer = tokenizer

    def __repr__(self) -> str:
        return f"Overlap({self.collection!r})"

    @classmethod
    def fit(cls, texts: Iterable[str], *, tokenizer: Words = ENGLISH) -> Overlap:
        """Take document frequencies from these texts."""
        return cls(WordStatistics.count(tokenizer(text) for text in texts), tokenizer=tokenizer)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair; it depends on that pair and the collection only."""

        @lru_cache(maxsize=1 << 16)
        def weights_of(query: str) -> list[tuple[str, float]]:
            words = self.tokenizer(query)
            return list(zip(words, self._weights(words), strict=True))

        @lru_cache(maxsize=1 << 16)
        def words_of(text: str) -> frozenset[str]:
            return frozenset(self.tokenizer(text))

        scores = np.zeros(len(pairs), np.float32)
        for n, pair in enumerate(track(pairs, self.name, show=progress)):
            held = words_of(pair.text)
            scores[n] = sum(weight for word, weight in weights_of(pair.query) if word in held)
        return scores

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The words that met, their rarity and their part of the score."""
        left, right = self.tokenizer(query), self.tokenizer(text)
        strengths = [self.collection.idf(word) for word in left]
        score = float(self.score([Pair(query, text)])[0])
        return left, right, exact_match_trace(left, right, strengths, self._weights(left), score)

    def _weights(self, words: list[str]) -> list[float]:
        """The share of each query word; together they make 1."""
        rarity = [self.collection.idf(word) for word in words]
        total = sum(rarity)
        return [weight / total for weight in rarity]
