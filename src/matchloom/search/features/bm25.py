"""BM25 of a question with the answers' texts, or with documents: each text with all questions of its entry.

The formula is `matchloom.lexical.bm25`'s, over all entries at once, or over some. A question that is left out takes its
own words out of its entry's document. In a large collection the documents' weights are also an inverted index, which
finds candidates and shows no score.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.bm25 import K1, B
from matchloom.lexical.bm25_matrix import TermStatistics, weights_of
from matchloom.lexical.columns import Columns, Floats, Ids, Rows
from matchloom.lexical.ranking import CountRows
from matchloom.search.features.base import Arrays, Known, Reads, inside, prefixed
from matchloom.search.queries import Queries
from matchloom.search.words import blocks_of


class BM25Feature:
    """`bm25_doc` with the questions of each entry in its document, `bm25_ans` with the text alone."""

    reads: Reads = "terms"

    def __init__(
        self, name: str, counts: Rows, lengths: Floats, weights: Columns | None, statistics: TermStatistics
    ) -> None:
        self.name, self._counts, self._lengths, self._weights = name, counts, lengths, weights
        self.statistics = statistics
        self._known: Known | None = None

    @classmethod
    def fit(
        cls,
        known: Known,
        *,
        documents: bool,
        table: Literal["scores", "candidates"] | None = "scores",
        statistics: TermStatistics | None = None,
    ) -> BM25Feature:
        """From entries, with a table of their weights that gives scores, or that finds candidates in single precision.

        `statistics` are those of a larger collection, where these entries are some of it.
        """
        counts = known.texts.counts
        if documents:
            counts = (counts + known.member.T.tocsr() @ known.questions.counts).tocsr()
        counts.sort_indices()
        found = statistics or TermStatistics.of(counts)
        lengths: Floats = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        weights = None
        if table is not None:
            data = np.empty(counts.nnz, dtype=np.float32 if table == "candidates" else np.float64)
            for own in blocks_of(counts.shape[0]):
                here = slice(counts.indptr[own.start], counts.indptr[own.stop])
                long = np.repeat(lengths[own], np.diff(counts.indptr[own.start : own.stop + 1]))
                data[here] = weights_of(found, counts.indices[here], counts.data[here], long)
            weights = Columns(sp.csr_array((data, counts.indices, counts.indptr), shape=counts.shape))
        made = cls("bm25_doc" if documents else "bm25_ans", Rows(counts.astype(np.float32)), lengths, weights, found)
        made._known = known
        return made

    def scores(self, queries: Queries) -> Floats:
        """One score for each question and entry."""
        if self._weights is None or self._weights.data.dtype != np.float64:
            every = np.arange(len(self._counts))
            return np.stack([self.some(queries.one(n), every) for n in range(len(queries))])
        return self._weights.dots(queries.terms.below(self._weights.columns))

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        terms, times = query.terms[0]
        return self._of(terms, times, rows)

    def _of(self, terms: Ids, times: Floats, rows: Ids) -> Floats:
        """By the counts of the rows: the sums run as they do by columns."""
        found = self._rows.bm25(rows, terms, times)
        if found is not None:
            return found
        starts = self._counts.starts[rows]
        sizes = self._counts.starts[rows + 1] - starts
        owners = np.repeat(np.arange(len(rows)), sizes)
        entries = np.arange(len(owners)) + (starts - (np.cumsum(sizes) - sizes))[owners]
        columns = self._counts.places[entries]
        at = np.searchsorted(terms, columns).clip(max=max(0, len(terms) - 1))
        met = np.flatnonzero(terms[at] == columns) if len(terms) else np.empty(0, dtype=np.int64)
        owners, columns, at = owners[met], columns[met], at[met]
        counts = self._counts.data[entries[met]].astype(np.float64)
        added = weights_of(self.statistics, columns, counts, self._lengths[rows[owners]]) * times[at]
        return np.bincount(owners, added, minlength=len(rows)).astype(np.float64, copy=False)

    @cached_property
    def _rows(self) -> CountRows:
        own = self.statistics
        return CountRows(self._counts, self._lengths, own.idf, (own.new_idf, own.mean_length, K1, B))

    def candidates(self, query: Queries, most: int, alive: NDArray[np.bool_] | None) -> Ids:
        """The entries with the highest scores above 0, of those that are alive."""
        assert self._weights is not None  # documents have them
        terms, times = query.terms.below(self._weights.columns)[0]
        return self._weights.best(terms, times, most, alive)

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question, as if it were not known."""
        assert self._known is not None  # it was just fitted
        read = self._known.questions.row(row)
        scores: Floats = self.scores(read)[0]
        if self.name == "bm25_doc":
            terms, times = read.terms[0]
            for entry in self._known.entries_of(row):
                columns, counts = self._counts[entry]
                left = counts[np.searchsorted(columns, terms)]  # the question's own stems are among them
                length = max(0.0, self._lengths[entry] - times.sum())
                scores[entry] = (weights_of(self.statistics, terms, left - times, length) * times).sum()
        return scores

    def contributions(self, query: Queries, entry: int) -> Floats:
        """What each stem of the question adds."""
        terms, times = query.terms[0]
        columns, counts = self._counts[entry]
        own = np.zeros(len(terms))
        own[np.isin(terms, columns)] = counts[np.isin(columns, terms)]
        return self._added(terms, times, own, float(self._lengths[entry]))

    def outside(self, query: Queries, text: Queries) -> Floats:
        """The same for a text outside the collection, with the collection's idf and mean length."""
        terms, times = query.terms[0]
        columns, counts = text.terms[0]
        own = np.zeros(len(terms))
        own[np.isin(terms, columns)] = counts[np.isin(columns, terms)]
        return self._added(terms, times, own, float(counts.sum()))

    def _added(self, terms: Ids, times: Floats, counts: Floats, length: float) -> Floats:
        added: Floats = weights_of(self.statistics, terms, counts, length) * times
        return added

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        return {
            "idf": self.statistics.idf,
            "mean_length": np.array([self.statistics.mean_length]),
            "new_idf": np.array([self.statistics.new_idf]),
            "lengths": self._lengths,
            **prefixed("counts", self._counts.arrays()),
            **({} if self._weights is None else prefixed("weights", self._weights.arrays())),
        }

    @classmethod
    def load(cls, name: str, arrays: Arrays) -> BM25Feature:
        """From what was saved."""
        statistics = TermStatistics(arrays["idf"], float(arrays["mean_length"][0]), float(arrays["new_idf"][0]))
        lengths, weights = arrays["lengths"], inside("weights", arrays)
        columns = Columns(weights, len(lengths)) if weights else None
        return cls(name, Rows(inside("counts", arrays), len(statistics.idf)), lengths, columns, statistics)
