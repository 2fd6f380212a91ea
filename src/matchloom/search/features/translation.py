"""How likely is the question, if each of its stems is a stem of the answer or stands for one?

    P(w|a) = (1 - beta) share(w in a) + beta sum over stems t of a of T(w|t) share(t in a)
    score  = sum over different stems w of the question of  ln(1 + (1 - lambda) P(w|a) / (lambda share(w in all)))

This is TransLM (`matchloom.lexical.trans_lm`) over stems and over all entries at once. T(w|t) is IBM Model 1's, learnt
from the known questions and the texts of their answers. The leave-one-out scores of a question come from a T that was
learnt without it: questions whose scores are asked for are parted into folds, and each fold's T from all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Columns, Floats, Ids, Rows
from matchloom.lexical.ibm_model1 import Translations, learn_translations
from matchloom.lexical.ranking import translated
from matchloom.search.features.base import Arrays, Known, Reads, inside, prefixed
from matchloom.search.features.centroid import Dense
from matchloom.search.queries import Queries

_BETA, _LAMBDA = 0.5, 0.3
_LEAST = 1e-3  # of T(w|t) that is kept
_NONE: Ids = np.empty(0, dtype=np.int64)
_PAIRS = 60_000  # of questions and answers that T is learnt from, where there are more


class Translation:
    """What stands for what, learnt from the collection's own questions."""

    name = "translation"
    reads: Reads = "terms"

    def __init__(self, table: Rows, shares: Columns | Rows, background: Floats, dense: Dense) -> None:
        """`table` has the T(w|t) of each w in its row, `shares` the stems of each entry, `background` of all."""
        self._table, self._shares, self._background, self._dense = table, shares, background, dense
        self._known: Known | None = None
        self._folds: Sequence[Rows] = ()
        self._fold_of: dict[int, int] = {}

    @classmethod
    def fit(
        cls, known: Known, dense: Dense, held_out: Sequence[Ids] = (), *, large: bool, progress: bool = False
    ) -> Translation:
        """Learn T from all questions, and for each set of rows in `held_out` once more without them."""
        size = known.texts.counts.shape[1]
        seen = np.asarray(known.texts.counts.sum(axis=0) + known.questions.counts.sum(axis=0), dtype=np.float64)
        background = np.where(seen.ravel() > 0, seen.ravel() + 0.5, 0.0)  # of stems; other columns have no counts
        learnt = learn(known, np.empty(0, dtype=np.int64), progress=progress)
        made = cls(_rows(learnt, size), _shares(known, large), background / background.sum(), dense)
        made._known = known
        made._folds = [_rows(learn(known, rows, progress=progress), size) for rows in held_out]
        made._fold_of = {row: n for n, rows in enumerate(held_out) for row in rows.tolist()}
        return made

    def of(self, known: Known) -> Translation:
        """The same translations for other entries."""
        return Translation(self._table, _shares(known, large=True), self._background, self._dense)

    def scores(self, queries: Queries) -> Floats:
        """One score for each question and entry."""
        return np.stack([self._scores(queries.terms[n][0], self._table, None) for n in range(len(queries))])

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        return self._scores(query.terms[0][0], self._table, rows)

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question by a T that was learnt without it."""
        assert self._known is not None  # it was just fitted
        return self._scores(self._known.questions.row(row).terms[0][0], self._folds[self._fold_of[row]], None)

    def contributions(self, query: Queries, entry: int) -> Floats:
        """What each stem of the question adds."""
        terms = query.terms[0][0]
        likely = self._likely(terms, self._table, np.array([entry]))[:, 0]
        return np.array([self._gain(term, P) for term, P in zip(terms.tolist(), likely.tolist(), strict=True)])

    def outside(self, query: Queries, text: Queries) -> Floats:
        """The same for a text outside the collection."""
        terms, (theirs, counts) = query.terms[0][0], text.terms[0]
        added = np.zeros(len(terms))
        total = max(1.0, float(counts.sum()))
        for i, term in enumerate(terms.tolist()):
            others, weights = self.stands_for(term)
            _, here, there = np.intersect1d(others, theirs, assume_unique=True, return_indices=True)
            added[i] = self._gain(term, float(weights[here] @ counts[there]) / total)
        return added

    def stands_for(self, term: int, table: Rows | None = None) -> tuple[Ids, Floats]:
        """The stems that speak for a stem of the question, and how much: (1 - beta) [w = t] + beta T(w|t)."""
        table = self._table if table is None else table
        if term >= len(table):
            return np.array([term]), np.array([1 - _BETA])
        terms, weights = table[term]
        weights = _BETA * weights
        at = int(np.searchsorted(terms, term))
        if at < len(terms) and terms[at] == term:
            weights[at] += 1 - _BETA
            return terms, weights
        return np.insert(terms, at, term), np.insert(weights, at, 1 - _BETA)

    def _scores(self, terms: Ids, table: Rows, rows: Ids | None) -> Floats:
        likely = self._likely(terms, table, rows)
        seen = np.array([self._seen(term) for term in terms.tolist()])
        scores = np.zeros(likely.shape[1])
        for gain in np.log1p((1 - _LAMBDA) * likely / (_LAMBDA * seen)[:, None]):
            scores += gain  # one after the other: the same bits for one entry as among others
        return scores

    def _likely(self, terms: Ids, table: Rows, rows: Ids | None) -> Floats:
        """P(w|a) of each stem w and entry a, before it is smoothed. (stems, entries)"""
        shares = self._shares
        if isinstance(shares, Rows):
            with self._dense(_NONE, np.empty(0)) as zeros:
                return translated(table, shares, terms, _BETA, np.arange(len(shares)) if rows is None else rows, zeros)
        found = np.empty((len(terms), shares.rows))
        for n, term in enumerate(terms.tolist()):
            others, weights = self.stands_for(term, table)
            kept = others < shares.columns
            found[n] = shares.dot(others[kept], weights[kept])
        return found if rows is None else found[:, rows]

    @cached_property
    def _new(self) -> float:
        """The background of a stem that came later: that of the rarest."""
        return float(self._background[self._background > 0].min(initial=1.0))

    def _gain(self, term: int, P: float) -> float:
        return float(np.log1p((1 - _LAMBDA) * P / (_LAMBDA * self._seen(term))))

    def _seen(self, term: int) -> float:
        found = float(self._background[term]) if term < len(self._background) else 0.0
        return found if found > 0 else self._new

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        by = "columns" if isinstance(self._shares, Columns) else "rows"
        shares = prefixed(by, self._shares.arrays())
        entries = np.array([self._shares.rows if isinstance(self._shares, Columns) else len(self._shares)])
        return {
            "background": self._background,
            "entries": entries,
            **shares,
            **prefixed("table", self._table.arrays()),
        }

    @classmethod
    def load(cls, arrays: Arrays, dense: Dense) -> Translation:
        """From what was saved."""
        columns, size = inside("columns", arrays), len(arrays["background"])
        shares = Columns(columns, int(arrays["entries"][0])) if columns else Rows(inside("rows", arrays), size)
        return cls(Rows(inside("table", arrays), size), shares, arrays["background"], dense)


def learn(known: Known, without: Ids, *, progress: bool = False) -> Translations:
    """T(w|t) from all known questions but these rows; a question counts each of its stems once."""
    kept = np.ones(known.member.shape[0], dtype=bool)
    kept[without] = False
    pairs = known.member.tocoo()
    taken = np.flatnonzero(kept[pairs.row])
    taken = taken[np.argsort(pairs.row[taken], kind="stable")][:_PAIRS]  # the order by digest means nothing
    rows, entries = pairs.row[taken].tolist(), pairs.col[taken].tolist()
    asked = {n: known.questions.count_rows[n][0] for n in rows}
    texts_of: dict[int, Ids] = {}
    for entry in np.unique(pairs.col[taken]).tolist():
        terms, counts = known.texts.count_rows[entry]
        texts_of[entry] = np.repeat(terms, counts.astype(np.int64))
    return learn_translations([asked[n] for n in rows], [texts_of[a] for a in entries], least=_LEAST, progress=progress)


def _shares(known: Known, large: bool) -> Columns | Rows:
    counts = known.texts.counts
    lengths = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1.0)
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    shares = sp.csr_array((counts.data / lengths[rows], counts.indices, counts.indptr), shape=counts.shape)
    return Rows(shares) if large else Columns(shares)


def _rows(table: Translations, size: int) -> Rows:
    return Rows(sp.csr_array((table.probability, (table.w, table.t)), shape=(size, size)))
