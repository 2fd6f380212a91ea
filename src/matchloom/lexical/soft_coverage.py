"""Soft coverage: how near does the text come to each word of the query? No training, and hard to beat.

    score(q, d) = sum over words w of q of  idf(w) * max over words v of d of cos(w, v)  /  sum of idf(w)

An equal word counts 1, whether or not it has a vector; a word without one is at 0 from all others, and nothing
counts less than 0. Stop words and punctuation of the query ask for nothing; the text stays whole (chosen on
TREC-QA DEV).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from matchloom.basics.progress import track
from matchloom.lexical.statistics import ENGLISH, Words, WordStatistics, is_stop_word
from matchloom.text.tokenize import language_of_words
from matchloom.traces import empty_grid, grid_trace
from matchloom.types import Pair, Scores, Trace

_BLOCK = 4_000_000  # cells of one product; a text of 100,000 words must not ask for gigabytes


class Vectors(Protocol):
    """Word vectors: row index[word] of the matrix belongs to the word. WordVectors is one."""

    @property
    def index(self) -> Mapping[str, int]:
        """The row of each word."""

    @property
    def matrix(self) -> NDArray[np.float32]:
        """One row a word."""


class SoftCoverage:
    """Between 0 (nothing near) and 1 (every query word is in the text)."""

    bounds: tuple[float, float] = (0.0, 1.0)

    def __init__(
        self, collection: WordStatistics, vectors: Vectors, *, tokenizer: Words = ENGLISH, stop_words: bool = True
    ) -> None:
        self.name = "soft_coverage"
        self.collection = collection
        self.vectors = vectors
        self.tokenizer = tokenizer
        self.stop_words = stop_words

    def __repr__(self) -> str:
        return f"SoftCoverage({self.collection!r})"

    @classmethod
    def fit(
        cls, texts: Iterable[str], vectors: Vectors, *, tokenizer: Words = ENGLISH, stop_words: bool = True
    ) -> SoftCoverage:
        """Take document frequencies from these texts."""
        collection = WordStatistics.count(tokenizer(text) for text in texts)
        return cls(collection, vectors, tokenizer=tokenizer, stop_words=stop_words)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair; it depends on that pair, the vectors and the collection only."""
        ids: dict[str, int] = {}  # of the words of these pairs, so that a text becomes a short array once

        def numbered(words: Iterable[str]) -> NDArray[np.intp]:
            return np.array([ids.setdefault(word, len(ids)) for word in words], np.intp)

        queries: dict[str, tuple[NDArray[np.intp], NDArray[np.float64]]] = {}
        texts: dict[str, NDArray[np.intp]] = {}
        for pair in pairs:
            if pair.query not in queries:
                asked = self._asked(self.tokenizer(pair.query))
                queries[pair.query] = numbered(asked), self._weights(asked)
            if pair.text not in texts:
                texts[pair.text] = numbered(dict.fromkeys(self.tokenizer(pair.text)))
        unit = self._unit_vectors(list(ids))
        scores = np.zeros(len(pairs), np.float32)
        for n, pair in enumerate(track(pairs, self.name, show=progress)):
            (left, weights), right = queries[pair.query], texts[pair.text]
            if len(left) and len(right):
                scores[n] = weights @ _best(unit, left, right)
        return scores

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """For each query word the nearest word of the text (its first place), the cosine and its part of the score."""
        left, right = self.tokenizer(query), self.tokenizer(text)
        grid = empty_grid(len(left), len(right))
        contributions = np.zeros(grid.shape)
        rows = [i for i, word in enumerate(left) if self._counts(word)]
        if rows and right:
            words = list(dict.fromkeys([*right, *left]))  # the words of the text first, each once, as in score()
            index = {word: i for i, word in enumerate(words)}
            distinct = np.arange(len(set(right)))
            cosines = _cosines(self._unit_vectors(words), np.array([index[left[i]] for i in rows]), distinct)
            grid[0, rows] = cosines[:, [index[word] for word in right]]
            for i, weight in zip(rows, self._weights([left[i] for i in rows]), strict=True):
                j = int(grid[0, i].argmax())
                contributions[0, i, j] = weight * grid[0, i, j]
        score = float(self.score([Pair(query, text)])[0])
        return left, right, grid_trace(score, grid, contributions, ["cosine"])

    def _asked(self, words: list[str]) -> list[str]:
        return [word for word in words if self._counts(word)]

    def _counts(self, word: str) -> bool:
        return not (self.stop_words and is_stop_word(word, language_of_words(self.tokenizer)))

    def _weights(self, words: list[str]) -> NDArray[np.float64]:
        rarity: NDArray[np.float64] = np.array([self.collection.idf(word) for word in words])
        rarity /= rarity.sum()
        return rarity

    def _unit_vectors(self, words: list[str]) -> NDArray[np.float64]:
        """Vectors of length 1, zero for words that have none.

        In double precision: scores are rounded to single, and what decides the last bits of a sum is rounded away.
        """
        index, matrix = self.vectors.index, self.vectors.matrix
        unit = np.zeros((len(words), matrix.shape[1]))
        known = [i for i, word in enumerate(words) if word in index]
        unit[known] = matrix[[index[words[i]] for i in known]]
        norms = np.linalg.norm(unit, axis=1, keepdims=True)
        unit /= np.where(norms > 0, norms, 1)
        return unit


def _cosines(unit: NDArray[np.float64], left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.float64]:
    """Cosine of each left and right word, at least 0, and 1 for equal words. (L, R)"""
    cosines = unit[left] @ unit[right].T
    cosines[left[:, None] == right] = 1.0
    return np.clip(cosines, 0.0, 1.0, out=cosines)


def _best(unit: NDArray[np.float64], left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.float64]:
    """The highest cosine of each left word. (L,)"""
    rows = max(1, _BLOCK // len(right))
    blocks = [_cosines(unit, left[i : i + rows], right).max(axis=1) for i in range(0, len(left), rows)]
    return np.concatenate(blocks)
