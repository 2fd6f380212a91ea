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
    new_idf: float = 0.0  # of a term that came later, and that one text has

    @classmethod
    def of(cls, counts: sp.csr_array) -> TermStatistics:
        """Of texts as rows of counts."""
        frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
        mean_length = float(counts.sum()) / max(1, counts.shape[0]) or 1.0
        return cls(idf(counts.shape[0], frequencies), mean_length, float(idf(max(1, counts.shape[0]), 1)))

    def idf_of(self, terms: Ids) -> Floats:
        """The idf of these terms, new ones among them."""
        if not len(terms) or terms.max() < len(self.idf):
            return self.idf[terms]
        known = terms < len(self.idf)
        return np.where(known, self.idf[np.where(known, terms, 0)], self.new_idf)


def weights_of(statistics: TermStatistics, terms: Ids, tf: Floats, length: Floats | float) -> Floats:
    """What each of these terms adds to the score of a text of this length that has it so often."""
    made: Floats = saturation(tf, length, statistics.mean_length) * statistics.idf_of(terms)
    return made


class BM25Matrix:
    """Texts as rows of `counts`, (texts, terms). A query is its terms and how often each is asked."""

    def __init__(self, counts: sp.csr_array) -> None:
        lengths: Floats = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        weights = weights_of(TermStatistics.of(counts), counts.indices, counts.data, lengths[rows])
        self._weights = Columns(sp.csr_array((weights, counts.indices, counts.indptr), shape=counts.shape))

    def scores(self, terms: Ids, times: Floats) -> Floats:
        """One score for each text."""
        return self._weights.dot(terms, times)

    def contributions(self, terms: Ids, times: Floats, row: int) -> Floats:
        """What each term adds to the score of one text."""
        return self._weights.row(row, terms) * times
