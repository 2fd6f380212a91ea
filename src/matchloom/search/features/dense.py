"""Features from a pretrained encoder: what a question means, beside which words it has.

A text is the mean of what the encoder made of its pieces, L2-normalised (`models/sentence_bert.py`). x is the question,
X the rows of all known questions and texts, Y is 1 where a row is of an entry.

    nearest   the highest cosine of x with a known question of the entry, or with its text
    text      the cosine of x with the text of the entry
    ridge     x W,   W = (X' X + noise I)^-1 X' Y: a linear classifier, one entry against all others

Leave-one-out scores are exact. Those of the ridge need no second fit:

    y_i - (y_i - x_i W) / (1 - h_i),    h_i = x_i (X' X + noise I)^-1 x_i'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Floats, Ids, products
from matchloom.search.features.base import Arrays, Known, Reads
from matchloom.search.reader import Queries

if TYPE_CHECKING:  # torch comes with it, and only who has an encoder needs it
    from matchloom.matcher import Matcher

_NOISE = 0.3
_LEAST = 1e-9
_ASKED = 1024
_LONGEST = 1200  # characters of a text that are read, about

Vectors = NDArray[np.float32]


class SentenceVectors:
    """The vectors of texts, each made once. Fits on parts of one file share them."""

    def __init__(self, matcher: Matcher, vectors: Mapping[str, Vectors] | None = None) -> None:
        """`matcher` has sentence vectors; `vectors` are those that are known already."""
        self.matcher = matcher
        self.vectors: dict[str, Vectors] = dict(vectors or {})
        self._asked = lru_cache(_ASKED)(self._one)

    def of(self, texts: Sequence[str], *, progress: bool = False) -> Vectors:
        """(N, D), kept for the next time."""
        new = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        if new:
            self.vectors.update(zip(new, self.matcher.vectors(new, progress=progress), strict=True))
        size = len(next(iter(self.vectors.values()))) if self.vectors else 0
        return np.stack([self.vectors[text] for text in texts]) if texts else np.empty((0, size), dtype=np.float32)

    def asked(self, queries: Queries) -> Floats:
        """The vectors of questions from outside, of which the last are kept. (N, D)"""
        return queries.once("dense", lambda own: self._all(own.texts))

    def one(self, text: str) -> Floats:
        """The vector of a text from outside. (D,)"""
        return self._asked(text)

    def _all(self, texts: Sequence[str]) -> Floats:
        if len(texts) == 1:
            return self._asked(texts[0])[None]
        return self.matcher.vectors(list(texts)).astype(np.float64)

    def _one(self, text: str) -> Floats:
        known = self.vectors.get(text)
        return (self.matcher.vectors([text])[0] if known is None else known).astype(np.float64)

    def cells(self, question: str, text: str) -> Floats:
        """What each pair of words adds to the cosine of two texts. (L, R)"""
        grid: Floats = self.matcher.trace(question, text)[2].grid[0].astype(np.float64)
        return grid


class KnownVectors:
    """The vectors of some entries: their different questions, and their texts."""

    def __init__(self, sentences: SentenceVectors, questions: Vectors, texts: Vectors) -> None:
        self.sentences, self.questions, self.texts = sentences, questions, texts

    @classmethod
    def of(
        cls, sentences: SentenceVectors, questions: Sequence[str], texts: Sequence[str], *, progress: bool = False
    ) -> KnownVectors:
        """Of these texts, which are encoded where they are new."""
        vectors = sentences.of([*questions, *texts], progress=progress)
        return cls(sentences, vectors[: len(questions)], vectors[len(questions) :])


def encoding_seconds(texts: Sequence[str]) -> float:
    """A guess of how long a small encoder needs for these texts on one core."""
    return sum(0.006 + 1.5e-4 * min(len(text), _LONGEST) for text in texts)


class DenseFeature(ABC):
    """What these features have in common: a question is one vector, of which no word has a part of its own."""

    name: str
    reads: Reads = "own"

    def __init__(self, vectors: KnownVectors) -> None:
        self.vectors = vectors

    def scores(self, queries: Queries) -> Floats:
        """One score for each question and entry."""
        return np.stack([self._of(x) for x in self.vectors.sentences.asked(queries)])

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        found: Floats = self.scores(query)[0][rows]
        return found

    def contributions(self, query: Queries, entry: int) -> Floats:
        """The score itself: how words share in it is said by `tracing`."""
        return self.some(query, np.array([entry]))

    def outside(self, query: Queries, text: Queries) -> Floats:
        """The cosine with a text that is not in the collection."""
        one = self.vectors.sentences.one
        return np.array([one(query.texts[0]) @ one(text.texts[0])])

    @abstractmethod
    def _of(self, x: Floats) -> Floats:
        """The scores of a question with this vector."""

    @abstractmethod
    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question, as if it were not known."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing but the vectors, which are saved once for all features."""
        return {}


class DenseNearest(DenseFeature):
    """Nearness to the best of what is known of an entry."""

    name = "dense_nearest"

    def __init__(self, vectors: KnownVectors, member: sp.csr_array) -> None:
        super().__init__(vectors)
        links = member.tocoo()
        entries = len(vectors.texts)
        rows = np.concatenate([links.row, len(vectors.questions) + np.arange(entries)])
        order = np.argsort(np.concatenate([links.col, np.arange(entries)]), kind="stable")
        self._rows = rows[order]  # of one entry after the other, its text among them
        sizes = 1 + np.bincount(links.col, minlength=entries)
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def _of(self, x: Floats, without: int | None = None) -> Floats:
        cosines = np.concatenate([products(self.vectors.questions, x), products(self.vectors.texts, x)])
        if without is not None:
            cosines[without] = -np.inf
        best: Floats = np.maximum.reduceat(cosines[self._rows], self._starts)
        return best

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question, as if it were not known."""
        return self._of(self.vectors.questions[row].astype(np.float64), row)


class DenseText(DenseFeature):
    """Nearness to the text of an entry."""

    name = "dense_text"

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        return products(self.vectors.texts, self.vectors.sentences.asked(query)[0], rows)

    def _of(self, x: Floats) -> Floats:
        return products(self.vectors.texts, x)

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question: the same, for the texts do not depend on it."""
        return self._of(self.vectors.questions[row].astype(np.float64))


class DenseRidge(DenseFeature):
    """A linear classifier over sentence vectors."""

    name = "dense_ridge"

    def __init__(self, vectors: KnownVectors, weights: Vectors) -> None:
        super().__init__(vectors)
        self._weights = weights  # (A, D)

    @classmethod
    def fit(cls, known: Known, vectors: KnownVectors) -> DenseRidge:
        """Solve the system."""
        X = np.vstack([vectors.questions, vectors.texts]).astype(np.float64)
        Y = sp.vstack([known.member, sp.eye_array(len(vectors.texts))], format="csr").astype(np.float64)
        inverse: Floats = np.linalg.inv(X.T @ X + _NOISE * np.eye(X.shape[1])).astype(np.float64)
        weights: Floats = (Y.T.tocsr() @ X) @ inverse
        made = cls(vectors, weights.astype(np.float32))
        made._inverse, made._exact, made._known = inverse, weights, known
        return made

    _inverse: Floats
    _exact: Floats
    _known: Known

    def _of(self, x: Floats) -> Floats:
        return products(self._weights, x)

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question, as if it were not known."""
        x = self.vectors.questions[row].astype(np.float64)
        target = self._known.member[[row]].toarray().ravel()
        left: Floats = target - (target - self._exact @ x) / max(1 - x @ self._inverse @ x, _LEAST)
        return left

    def outside(self, query: Queries, text: Queries) -> Floats:
        """A text that is no class says nothing."""
        return np.zeros(1)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        return {"weights": self._weights}

    @classmethod
    def load(cls, arrays: Arrays, vectors: KnownVectors) -> DenseRidge:
        """From what was saved."""
        return cls(vectors, arrays["weights"])
