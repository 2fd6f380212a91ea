"""The cosine of a question with the centre of an entry (its questions, and its text at half the weight), or its text.

c_a           = sum over questions x of a of x  +  1/2 text_a
score         = x . c_a / |c_a|
leave one out = (x . c_a - x . x) / sqrt(|c_a|^2 - 2 x . c_a + x . x)       for the entries that have x

With the text alone c_a = text_a: what tells an entry whose questions are not known from others whose questions are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Columns, Floats, Ids, Rows
from matchloom.search.features.base import Arrays, Known, Reads, inside, prefixed
from matchloom.search.queries import Queries
from matchloom.search.words import blocks_of, by_entry, stacked

_TEXT = 0.5
_LEAST = 1e-12
Dense = Callable[[Ids, Floats], AbstractContextManager[Floats]]  # a question as a vector, see Reader.dense


class Centroid:
    """`centroid` with the questions of each entry, `text` with the text alone."""

    reads: Reads = "vectors"

    def __init__(self, name: str, sums: Columns | Rows, squares: Floats, dense: Dense) -> None:
        self.name, self._sums, self._squares, self._dense = name, sums, squares, dense
        self._known: Known | None = None

    @classmethod
    def fit(cls, known: Known, dense: Dense, *, questions: bool, large: bool) -> Centroid:
        """From entries; those of a large collection are stored by rows."""
        texts, owners = known.texts.vectors, by_entry(known.member, known.questions.vectors)
        asked = np.diff(known.questions.vectors.indptr)[owners.indices].sum() if questions else 0
        squares = np.empty(texts.shape[0])

        def block(own: slice) -> sp.csr_array:
            sums = texts[own] * np.float32(_TEXT)
            if questions and known.member.nnz:
                sums = sums + owners[own] @ known.questions.vectors
            rows = np.repeat(np.arange(sums.shape[0]), np.diff(sums.indptr))
            squares[own] = np.bincount(rows, sums.data.astype(np.float64) ** 2, minlength=sums.shape[0])
            sums.sort_indices()
            return sums

        blocks = map(block, blocks_of(texts.shape[0]))
        sums = stacked(blocks, texts.shape[0], texts.shape[1], texts.nnz + int(asked))
        made = cls("centroid" if questions else "text", Rows(sums) if large else Columns(sums), squares, dense)
        made._known = known
        return made

    def scores(self, queries: Queries) -> Floats:
        """One score for each question and entry."""
        return self._products(queries) / np.sqrt(np.maximum(self._squares, _LEAST))

    def _products(self, queries: Queries) -> Floats:
        if isinstance(self._sums, Columns):
            return self._sums.dots(queries.vectors.below(self._sums.columns))
        return np.stack([self._row_products(queries, n, None) for n in range(len(queries))])

    def _row_products(self, queries: Queries, n: int, rows: Ids | None) -> Floats:
        assert isinstance(self._sums, Rows)
        with self._dense(*queries.vectors[n]) as vector:
            return self._sums.dot(vector, rows)

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        if isinstance(self._sums, Columns):
            found: Floats = self.scores(query)[0][rows]
            return found
        cosines: Floats = self._row_products(query, 0, rows) / np.sqrt(np.maximum(self._squares[rows], _LEAST))
        return cosines

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question, as if it were not known."""
        assert self._known is not None  # it was just fitted
        read = self._known.questions.row(row)
        products = self._products(read)[0]
        scores: Floats = products / np.sqrt(np.maximum(self._squares, _LEAST))
        if self.name == "text":
            return scores
        own = float((read.vectors.values**2).sum())
        for entry in self._known.entries_of(row):
            left = self._squares[entry] - 2 * products[entry] + own
            # Nothing but the question was there: what is left is rounding.
            empty = left < 1e-6 * max(own, _LEAST)
            scores[entry] = 0.0 if empty else (products[entry] - own) / np.sqrt(left)
        return scores

    def contributions(self, query: Queries, entry: int) -> Floats:
        """What each feature of the question adds."""
        features, values = query.vectors[0]
        length = np.sqrt(max(float(self._squares[entry]), _LEAST))
        if isinstance(self._sums, Columns):
            inside_table = features < self._sums.columns
            own = np.zeros(len(features))
            own[inside_table] = self._sums.row(entry, features[inside_table])
        else:
            columns, sums = self._sums[entry]
            own = np.zeros(len(features))
            own[np.isin(features, columns)] = sums[np.isin(columns, features)]
        added: Floats = own * values / length
        return added

    def outside(self, query: Queries, text: Queries) -> Floats:
        """The same for a text outside the collection, which is its own centre."""
        (features, values), (others, theirs) = query.vectors[0], text.vectors[0]
        _, here, there = np.intersect1d(features, others, assume_unique=True, return_indices=True)
        added = np.zeros(len(features))
        added[here] = theirs[there] * values[here] / np.sqrt(max(float((theirs**2).sum()), _LEAST))
        return added

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        by = "columns" if isinstance(self._sums, Columns) else "rows"
        return {"squares": self._squares, **prefixed(by, self._sums.arrays())}

    @classmethod
    def load(cls, name: str, arrays: Arrays, dense: Dense, size: int) -> Centroid:
        """From what was saved."""
        squares, columns = arrays["squares"], inside("columns", arrays)
        sums = Columns(columns, len(squares)) if columns else Rows(inside("rows", arrays), size)
        return cls(name, sums, squares, dense)
