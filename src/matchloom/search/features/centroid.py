"""The cosine of a question with the centre of an answer (its questions, and its text at half the weight), or its text.

c_a      = sum over questions x of a of x  +  1/2 text_a
score    = x . c_a / |c_a|
left out = (x . c_a - x . x) / sqrt(|c_a|^2 - 2 x . c_a + x . x)       for the answers that have x

With the text alone c_a = text_a: what tells an answer whose questions are not known from others whose questions are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from matchloom.lexical.columns import Columns
from matchloom.search.entries import Floats
from matchloom.search.features.base import Known
from matchloom.search.reader import Query

_TEXT = 0.5
_LEAST = 1e-12


class Centroid:
    """`centroid` with the questions of each answer, `text` with the text alone."""

    reads: Literal["terms", "features", "own"] = "features"

    def __init__(self, known: Known, *, questions: bool) -> None:
        self.name = "centroid" if questions else "text"
        self._known, self._questions = known, questions
        sums = (known.texts.vectors * np.float32(_TEXT)).tocsr()
        if questions and known.member.nnz:
            sums = (sums + known.member.T.tocsr().astype(np.float32) @ known.questions.vectors).tocsr()
        rows = np.repeat(np.arange(sums.shape[0]), np.diff(sums.indptr))
        squares = np.bincount(rows, sums.data.astype(np.float64) ** 2, minlength=sums.shape[0])
        self._squares: Floats = squares.astype(np.float64)
        self._sums = Columns(sums)

    def scores(self, read: Query) -> Floats:
        """One score for each answer."""
        cosines: Floats = self._sums.dot(read.features, read.values) / np.sqrt(np.maximum(self._squares, _LEAST))
        return cosines

    def left_out(self, row: int) -> Floats:
        """The scores of a known question, if it were not known."""
        read = self._known.questions.row(row)
        products = self._sums.dot(read.features, read.values)
        scores: Floats = products / np.sqrt(np.maximum(self._squares, _LEAST))
        if not self._questions:
            return scores
        own = float((read.values**2).sum())
        for answer in self._known.answers_of(row):
            left = self._squares[answer] - 2 * products[answer] + own
            # Nothing but the question was there: what is left is rounding.
            empty = left < 1e-6 * max(own, _LEAST)
            scores[answer] = 0.0 if empty else (products[answer] - own) / np.sqrt(left)
        return scores

    def contributions(self, read: Query, answer: int) -> Floats:
        """What each feature of the question adds."""
        length = np.sqrt(max(float(self._squares[answer]), _LEAST))
        added: Floats = self._sums.row(answer, read.features) * read.values / length
        return added

    def outside(self, read: Query, text: Query) -> Floats:
        """The same for a text outside the collection, which is its own centre."""
        _, here, there = np.intersect1d(read.features, text.features, assume_unique=True, return_indices=True)
        added = np.zeros(len(read.features))
        added[here] = text.values[there] * read.values[here] / np.sqrt(max(float((text.values**2).sum()), _LEAST))
        return added
