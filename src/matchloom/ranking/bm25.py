"""BM25 of a question with the answers' texts, or with documents: each text with all questions of its answer.

    score(q, d) = sum over different stems w of q of  idf(w) * tf / (tf + k1 * (1 - b + b * |d| / mean length))

as in `matchloom.lexical.bm25`, over all answers at once. A question that is left out takes its own words out of its
answer's document.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from matchloom.ranking.answers import Floats
from matchloom.ranking.columns import Columns
from matchloom.ranking.evidence import Known
from matchloom.ranking.reading import Read

_K1, _B = 1.2, 0.75


class Statistics(NamedTuple):
    """What BM25 knows of a collection."""

    idf: Floats
    mean_length: float

    @classmethod
    def of(cls, counts: sp.csr_array) -> Statistics:
        """Of documents, as counts of their stems."""
        df = np.bincount(counts.indices, minlength=counts.shape[1])
        mean = float(counts.sum()) / max(1, counts.shape[0])
        return cls(np.log1p((counts.shape[0] - df + 0.5) / (df + 0.5)), mean or 1.0)

    def weight(self, tf: Floats, length: Floats | float) -> Floats:
        """How much so many occurrences in a document of this length count."""
        made: Floats = tf / (tf + _K1 * (1 - _B + _B * length / self.mean_length))
        return made


class BM25Evidence:
    """`bm25_doc` with the questions of each answer in its document, `bm25_ans` with the text alone."""

    reads: Literal["terms", "features", "own"] = "terms"

    def __init__(self, known: Known, *, documents: bool, statistics: Statistics | None = None) -> None:
        self.name = "bm25_doc" if documents else "bm25_ans"
        self._known, self._documents = known, documents
        counts = known.texts.counts
        if documents:
            counts = (counts + known.member.T.tocsr() @ known.questions.counts).tocsr()
        self._counts = counts
        self.statistics = statistics or Statistics.of(counts)
        self._lengths: Floats = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        weights = self.statistics.weight(counts.data, self._lengths[rows]) * self.statistics.idf[counts.indices]
        self._weights = Columns(sp.csr_array((weights, counts.indices, counts.indptr), shape=counts.shape))

    def scores(self, read: Read) -> Floats:
        """One score for each answer."""
        return self._weights.dot(read.terms, np.ones(len(read.terms)))

    def left_out(self, row: int) -> Floats:
        """The scores of a known question, if it were not known."""
        read = self._known.questions.row(row)
        scores = self.scores(read)
        if self._documents:
            for answer in self._known.answers_of(row):
                left = self._counts[[answer]].toarray().ravel()[read.terms] - read.counts
                length = max(0.0, self._lengths[answer] - read.counts.sum())
                scores[answer] = (self.statistics.weight(left, length) * self.statistics.idf[read.terms]).sum()
        return scores

    def contributions(self, read: Read, answer: int) -> Floats:
        """What each stem of the question adds."""
        return self._weights.row(answer, read.terms)

    def outside(self, read: Read, text: Read) -> Floats:
        """The same for a text outside the collection, with the collection's idf and mean length."""
        places = np.searchsorted(text.terms, read.terms).clip(max=max(0, len(text.terms) - 1))
        tf = np.zeros(len(read.terms))
        if len(text.terms):
            same = text.terms[places] == read.terms
            tf[same] = text.counts[places[same]]
        return self.statistics.weight(tf, float(text.counts.sum())) * self.statistics.idf[read.terms]
