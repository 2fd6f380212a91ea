"""BM25 of one query with every text of a collection at once, from counts of numbered terms.

The formula, its statistics and its constants are those of `matchloom.lexical.bm25`; only the shape differs. Terms are
added up in the order in which they are asked, so that a score here is the score there to the bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from matchloom.lexical.bm25 import saturation
from matchloom.lexical.columns import Columns, Floats, Ids
from matchloom.lexical.statistics import idf


class TermStatistics(NamedTuple):
    """What BM25 knows of a collection of texts whose terms are numbered."""

    idf: Floats
    mean_length: float

    @classmethod
    def of(cls, counts: sp.csr_array) -> TermStatistics:
        """Of texts as rows of counts."""
        frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
        return cls(idf(counts.shape[0], frequencies), float(counts.sum()) / max(1, counts.shape[0]) or 1.0)


class BM25Matrix:
    """Texts as rows of `counts`, (texts, terms). A query is its terms and how often each is asked."""

    def __init__(self, counts: sp.csr_array, statistics: TermStatistics | None = None) -> None:
        """`statistics` are those of a larger collection, where these texts are some of it."""
        self._counts = counts
        self.lengths: Floats = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        self.statistics = statistics or TermStatistics.of(counts)
        self.idf, self.mean_length = self.statistics
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        weights = self._weight(counts.data, self.lengths[rows]) * self.idf[counts.indices]
        self._weights = Columns(sp.csr_array((weights, counts.indices, counts.indptr), shape=counts.shape))

    def scores(self, terms: Ids, times: Floats) -> Floats:
        """One score for each text."""
        return self._weights.dot(terms, times)

    def contributions(self, terms: Ids, times: Floats, row: int) -> Floats:
        """What each term adds to the score of one text."""
        return self._weights.row(row, terms) * times

    def of_counts(self, terms: Ids, times: Floats, tf: Floats, length: float) -> Floats:
        """What each term adds to the score of a text of this length that has it so often."""
        added: Floats = self._weight(tf, length) * self.idf[terms] * times
        return added

    def without(self, terms: Ids, times: Floats, row: int) -> float:
        """The score of a text from which the query itself was taken out."""
        left = self._counts[[row]].toarray().ravel()[terms] - times
        length = max(0.0, self.lengths[row] - times.sum())
        return float(self.of_counts(terms, times, left, length).sum())

    def _weight(self, tf: Floats, length: Floats | float) -> Floats:
        made: Floats = saturation(tf, length, self.mean_length)
        return made
