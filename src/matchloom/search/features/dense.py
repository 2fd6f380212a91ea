"""Features from a pretrained encoder: what a question means, beside which words it has.

A text is the mean of what the encoder made of its pieces, L2-normalised (`models/sentence_bert.py`).

    nearest   the highest cosine of the question with a known question of the entry
    text      the cosine with the text of the entry
    softmax   multinomial logistic regression over the vectors of known questions and texts, one entry a class

Leave-one-out scores are exact, but for those of the regression, which come by folds as those of other classifiers do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.coded import Coded
from matchloom.lexical.columns import Floats, Ids, products
from matchloom.lexical.ranking import Owned
from matchloom.search.entries import best_first
from matchloom.search.features.base import Arrays, Known, Reads
from matchloom.search.features.linear import FOLDS, folds_of
from matchloom.search.features.softmax import learn_softmax, side_by_side
from matchloom.search.queries import Queries

if TYPE_CHECKING:  # torch comes with it, and only who has an encoder needs it
    from matchloom.matcher import Matcher

_REGULAR, _STEPS = 30.0, 100  # of the regression
_ASKED = 1024
_COUNTED = 500  # texts that say how well an encoder knows their language
_LONGEST = 1200  # characters of a text that are read, about

Vectors = NDArray[np.float32]


class SentenceVectors:
    """The vectors of texts, each made once. Fits on parts of one file share them."""

    def __init__(
        self,
        matcher: Matcher,
        vectors: Mapping[str, Vectors] | None = None,
        *,
        untuned: SentenceVectors | None = None,
    ) -> None:
        """`matcher` has sentence vectors; `vectors` are those that are known already.

        `untuned` are those of the same encoder before it was tuned on a collection's questions (`tuned.py`).
        """
        self.matcher, self.untuned = matcher, untuned
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
        return queries.once("dense" if self.untuned is None else "tuned", lambda own: self._all(own.texts))

    def one(self, text: str) -> Floats:
        """The vector of a text from outside. (D,)"""
        return self._asked(text)

    def _all(self, texts: Sequence[str]) -> Floats:
        if len(texts) == 1:
            return self._asked(texts[0])[None]
        new = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        made = dict(zip(new, self.matcher.vectors(new), strict=True)) if new else {}
        return np.stack([made[text] if text in made else self.vectors[text] for text in texts]).astype(np.float64)

    def _one(self, text: str) -> Floats:
        known = self.vectors.get(text)
        return (self.matcher.vectors([text])[0] if known is None else known).astype(np.float64)

    def pieces_per_word(self, texts: Sequence[str]) -> float:
        """Into how many pieces the encoder cuts a word of these texts, on the mean: many, and it does not know them.

        A piece that stands for anything unknown counts as three.
        """
        reader = self.matcher.reader
        if reader.pieces is None:
            return 1.0
        words = pieces = 0
        for text in texts[:_COUNTED]:
            spans = reader.tokenizer.spans(text)
            found = reader.pieces(text, spans)
            unknown = getattr(reader.pieces, "unknown", None)
            pieces += sum(
                3 if one == unknown else 1 for one, word in zip(found.ids, found.words, strict=True) if word >= 0
            )
            words += len(spans)
        return pieces / max(1, words)

    def cells(self, question: str, text: str) -> Floats:
        """What each pair of words adds to the cosine of two texts. (L, R)"""
        grid: Floats = self.matcher.trace(question, text)[2].grid[0].astype(np.float64)
        return grid


class KnownVectors:
    """The vectors of some entries: their different questions, and their texts.

    Where the encoder was tuned on these questions, `without` has for each fold of them that is left out the vectors of
    all questions and texts by an encoder that was tuned without it: only these say how a new question fares. `untuned`
    are the vectors by the encoder as it came, which know foreign questions better.
    """

    def __init__(
        self,
        sentences: SentenceVectors,
        questions: Vectors,
        texts: Vectors,
        without: Sequence[tuple[Vectors, Vectors]] = (),
        folds: int = FOLDS,
        untuned: KnownVectors | None = None,
    ) -> None:
        self.sentences: SentenceVectors = sentences
        self.questions: Vectors = questions
        self.texts: Vectors = texts
        self.without, self.folds, self.untuned = without, folds, untuned

    def left_out(self, row: int) -> tuple[Vectors, Vectors]:
        """The vectors of questions and texts by an encoder that has not learnt from this question."""
        return self.without[row % self.folds] if self.without else (self.questions, self.texts)

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


class DenseFinder(DenseFeature):
    """A feature that finds candidates, too: entries with some rows of a table, the best of which counts.

    Those of a large collection are found by a copy in eight bits, where it has one.
    """

    def __init__(self, vectors: KnownVectors, table: Vectors, owned: Owned) -> None:
        super().__init__(vectors)
        self._table, self._owned = table, owned
        self.coded: Coded | None = None

    def code(self) -> None:
        """Make the copy in eight bits."""
        self.coded = Coded.of(self._table, self._owned)

    def load_codes(self, arrays: Arrays) -> None:
        """The copy that was saved, if one was; a ValueError where it is not of these vectors."""
        coded = Coded.load(arrays)
        if coded is not None and coded.fits(self._table, self._owned):
            self.coded = coded
        elif coded is not None:
            raise ValueError("codes of other vectors")

    def candidates(self, query: Queries, most: int, alive: NDArray[np.bool_] | None) -> Ids:
        """The entries with the highest scores of those that are alive, best first."""
        x = self.vectors.sentences.asked(query)[0]
        found = None if self.coded is None else self.coded.best(self._table, self._owned, x, most, alive)
        if found is not None:
            return found
        scores = self._of(x) if alive is None else np.where(alive, self._of(x), -np.inf)
        best = best_first(scores, most)
        return best[np.isfinite(scores[best])]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The copy in eight bits; the vectors are saved once for all features."""
        return {} if self.coded is None else self.coded.arrays()


class DenseNearest(DenseFinder):
    """Nearness to the best known question of an entry; 0 for an entry without one."""

    name = "dense_nearest"

    def __init__(self, vectors: KnownVectors, member: sp.csr_array) -> None:
        by_entry = member.tocsc()
        super().__init__(vectors, vectors.questions, Owned(by_entry.indptr, by_entry.indices))

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        starts = self._owned.starts[rows]
        sizes = self._owned.starts[rows + 1] - starts
        firsts = np.cumsum(sizes) - sizes
        own = self._owned.places[np.arange(int(sizes.sum())) + np.repeat(starts - firsts, sizes)]
        return _highest(products(self._table, self.vectors.sentences.asked(query)[0], own), firsts, sizes)

    def _of(self, x: Floats) -> Floats:
        return self._best(products(self._table, x))

    def _best(self, cosines: Floats) -> Floats:
        starts = self._owned.starts
        return _highest(cosines[self._owned.places], starts[:-1], np.diff(starts))

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question, as if it were not known."""
        questions, _ = self.vectors.left_out(row)
        cosines = products(questions, questions[row].astype(np.float64))
        cosines[row] = -np.inf
        return self._best(cosines)


def _highest(cosines: Floats, starts: Ids, sizes: Ids) -> Floats:
    """The highest of so many from each start on; 0 where there is none."""
    best, filled = np.zeros(len(starts)), np.flatnonzero(sizes)
    if len(filled):
        best[filled] = np.maximum.reduceat(cosines, starts[filled])
    return np.where(np.isfinite(best), best, 0.0)


class DenseText(DenseFinder):
    """Nearness to the text of an entry."""

    name = "dense_text"

    def __init__(self, vectors: KnownVectors) -> None:
        entries = np.arange(len(vectors.texts) + 1)
        super().__init__(vectors, vectors.texts, Owned(entries, entries[:-1].astype(np.int32)))

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        return products(self.vectors.texts, self.vectors.sentences.asked(query)[0], rows)

    def _of(self, x: Floats) -> Floats:
        return products(self.vectors.texts, x)

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question: the same, for the texts do not depend on it."""
        questions, texts = self.vectors.left_out(row)
        return products(texts, questions[row].astype(np.float64))


class DenseClassifier(DenseFeature):
    """Multinomial logistic regression over sentence vectors."""

    name = "dense_softmax"

    def __init__(self, vectors: KnownVectors, weights: Vectors, bias: Vectors) -> None:
        super().__init__(vectors)
        self._weights, self._bias = weights, bias  # (A, D), (A,)
        self._left_out: Floats = np.empty((0, 0))

    @classmethod
    def fit(cls, known: Known, vectors: KnownVectors, *, folds: int = FOLDS) -> DenseClassifier:
        """Learn from questions and texts, and by folds what is said of questions that are left out; none with 0."""
        links = known.member.tocoo()
        questions, entries = known.member.shape
        rows = np.concatenate([links.row, questions + np.arange(entries)])
        classes = np.concatenate([links.col, np.arange(entries)])

        def learn(n: int) -> tuple[Floats, Floats]:
            X = np.vstack((vectors.questions, vectors.texts) if n < 0 else vectors.left_out(n))
            kept = np.ones(len(rows), dtype=bool) if n < 0 else ~np.isin(rows, np.arange(n, questions, folds))
            return learn_softmax(X[rows[kept]], classes[kept], _REGULAR, _STEPS)

        (weights, bias), *others = side_by_side(learn, range(-1, folds_of(questions, folds)))
        made = cls(vectors, np.ascontiguousarray(weights.T, dtype=np.float32), bias.astype(np.float32))
        made._left_out = np.zeros((questions if folds else 0, entries))
        for n, (own, begin) in enumerate(others):
            held = np.arange(n, questions, folds)  # questions are in an order of digests
            made._left_out[held] = vectors.left_out(n)[0][held].astype(np.float64) @ own + begin
        return made

    def _of(self, x: Floats) -> Floats:
        return products(self._weights, x) + self._bias

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question by a classifier that learnt without it (and without the rest of its fold)."""
        left: Floats = self._left_out[row]
        return left

    def outside(self, query: Queries, text: Queries) -> Floats:
        """A text that is no class says nothing."""
        return np.zeros(1)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        return {"weights": self._weights, "bias": self._bias}

    @classmethod
    def load(cls, arrays: Arrays, vectors: KnownVectors) -> DenseClassifier:
        """From what was saved."""
        return cls(vectors, arrays["weights"], arrays["bias"])
