"""BM25 of a question with the answers' texts, or with documents: each text with all questions of its answer.

The formula is `matchloom.lexical.bm25`'s, over all answers at once. A question that is left out takes its own words out
of its answer's document.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from matchloom.lexical.bm25_matrix import BM25Matrix, TermStatistics
from matchloom.search.entries import Floats
from matchloom.search.features.base import Known
from matchloom.search.reader import Query


class BM25Evidence:
    """`bm25_doc` with the questions of each answer in its document, `bm25_ans` with the text alone."""

    reads: Literal["terms", "features", "own"] = "terms"

    def __init__(self, known: Known, *, documents: bool, statistics: TermStatistics | None = None) -> None:
        self.name = "bm25_doc" if documents else "bm25_ans"
        self._known, self._documents = known, documents
        counts = known.texts.counts
        if documents:
            counts = (counts + known.member.T.tocsr() @ known.questions.counts).tocsr()
        self._matrix = BM25Matrix(counts, statistics)
        self.statistics = self._matrix.statistics

    def scores(self, read: Query) -> Floats:
        """One score for each answer."""
        return self._matrix.scores(read.terms, read.counts)

    def left_out(self, row: int) -> Floats:
        """The scores of a known question, if it were not known."""
        read = self._known.questions.row(row)
        scores = self.scores(read)
        if self._documents:
            for answer in self._known.answers_of(row):
                scores[answer] = self._matrix.without(read.terms, read.counts, answer)
        return scores

    def contributions(self, read: Query, answer: int) -> Floats:
        """What each stem of the question adds."""
        return self._matrix.contributions(read.terms, read.counts, answer)

    def outside(self, read: Query, text: Query) -> Floats:
        """The same for a text outside the collection, with the collection's idf and mean length."""
        places = np.searchsorted(text.terms, read.terms).clip(max=max(0, len(text.terms) - 1))
        tf = np.zeros(len(read.terms))
        if len(text.terms):
            same = text.terms[places] == read.terms
            tf[same] = text.counts[places[same]]
        return self._matrix.of_counts(read.terms, read.counts, tf, float(text.counts.sum()))
