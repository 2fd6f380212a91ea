"""How likely is the question, if each of its stems is a stem of the answer or stands for one?

    P(w|a) = (1 - beta) share(w in a) + beta sum over stems t of a of T(w|t) share(t in a)
    score  = sum over different stems w of the question of  ln(1 + (1 - lambda) P(w|a) / (lambda share(w in all)))

This is TransLM (`matchloom.lexical.trans_lm`) over stems and over all answers at once. T(w|t) is IBM Model 1's, learnt
from the known questions and the texts of their answers. A question's left-out scores come from a T that was learnt
without it: the questions whose left-out scores are asked for are parted into folds, and each fold's T from all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import scipy.sparse as sp

from matchloom.lexical.columns import Columns
from matchloom.lexical.ibm_model1 import Translations, learn_translations
from matchloom.search.entries import Floats, Ids
from matchloom.search.features.base import Known
from matchloom.search.reader import Query

_BETA, _LAMBDA = 0.5, 0.3
_LEAST = 1e-3  # of T(w|t) that is kept
_PAIRS = 60_000  # of questions and answers that T is learnt from, where there are more


class Translation:
    """What stands for what, learnt from the collection's own questions."""

    name = "translation"
    reads: Literal["terms", "features", "own"] = "terms"

    def __init__(self, known: Known, table: Translations, folds: Sequence[tuple[Ids, Translations]] = ()) -> None:
        self._known = known
        self.translations = table
        size = known.texts.counts.shape[1]
        self._table = _rows(table, size)
        self._folds = [_rows(fold, size) for _, fold in folds]
        self._fold_of = {row: n for n, (rows, _) in enumerate(folds) for row in rows.tolist()}
        counts = known.texts.counts
        lengths = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1.0)
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        shares = sp.csr_array((counts.data / lengths[rows], counts.indices, counts.indptr), shape=counts.shape)
        self._shares = Columns(shares)
        seen = np.asarray(counts.sum(axis=0) + known.questions.counts.sum(axis=0), dtype=np.float64).ravel() + 0.5
        self._background: Floats = seen / seen.sum()

    @classmethod
    def fit(cls, known: Known, held_out: Sequence[Ids] = (), *, progress: bool = False) -> Translation:
        """Learn T from all questions, and for each set of rows in `held_out` once more without them."""
        folds = [(rows, learn(known, rows, progress=progress)) for rows in held_out]
        return cls(known, learn(known, np.empty(0, dtype=np.int64), progress=progress), folds)

    def scores(self, read: Query) -> Floats:
        """One score for each answer."""
        return self._scores(read, self._table)

    def left_out(self, row: int) -> Floats:
        """The scores of a known question by a T that was learnt without it."""
        return self._scores(self._known.questions.row(row), self._folds[self._fold_of[row]])

    def contributions(self, read: Query, answer: int) -> Floats:
        """What each stem of the question adds."""
        added = np.zeros(len(read.terms))
        for i, term in enumerate(read.terms.tolist()):
            terms, weights = self.stands_for(term)
            P = float(self._shares.row(answer, terms) @ weights)
            added[i] = self._gain(term, P)
        return added

    def outside(self, read: Query, text: Query) -> Floats:
        """The same for a text outside the collection."""
        added = np.zeros(len(read.terms))
        total = max(1.0, float(text.counts.sum()))
        for i, term in enumerate(read.terms.tolist()):
            terms, weights = self.stands_for(term)
            _, here, there = np.intersect1d(terms, text.terms, assume_unique=True, return_indices=True)
            added[i] = self._gain(term, float(weights[here] @ text.counts[there]) / total)
        return added

    def stands_for(self, term: int, table: sp.csr_array | None = None) -> tuple[Ids, Floats]:
        """The stems that speak for a stem of the question, and how much: (1 - beta) [w = t] + beta T(w|t)."""
        table = self._table if table is None else table
        cut = slice(table.indptr[term], table.indptr[term + 1])
        terms, weights = table.indices[cut].astype(np.int64), _BETA * table.data[cut].astype(np.float64)
        place = int(np.searchsorted(terms, term))
        if place < len(terms) and terms[place] == term:
            weights[place] += 1 - _BETA
            return terms, weights
        return np.insert(terms, place, term), np.insert(weights, place, 1 - _BETA)

    def _scores(self, read: Query, table: sp.csr_array) -> Floats:
        scores = np.zeros(self._shares.rows)
        for term in read.terms.tolist():
            scores += self._gain(term, self._shares.dot(*self.stands_for(term, table)))
        return scores

    def _gain(self, term: int, P: Floats | float) -> Floats:
        gain: Floats = np.log1p((1 - _LAMBDA) * P / (_LAMBDA * self._background[term]))
        return gain


def learn(known: Known, without: Ids, *, progress: bool = False) -> Translations:
    """T(w|t) from all known questions but these rows; a question counts each of its stems once."""
    kept = np.ones(known.member.shape[0], dtype=bool)
    kept[without] = False
    pairs = known.member.tocoo()
    taken = np.flatnonzero(kept[pairs.row])
    taken = taken[np.argsort(pairs.row[taken], kind="stable")][:_PAIRS]  # the order by digest means nothing
    rows, answers = pairs.row[taken].tolist(), pairs.col[taken].tolist()
    asked = {n: known.questions.row(n).terms for n in rows}
    told: dict[int, Ids] = {}
    for answer in np.unique(pairs.col[taken]).tolist():
        read = known.texts.row(answer)
        told[answer] = np.repeat(read.terms, read.counts.astype(np.int64))
    return learn_translations([asked[n] for n in rows], [told[a] for a in answers], least=_LEAST, progress=progress)


def _rows(table: Translations, size: int) -> sp.csr_array:
    made = sp.csr_array((table.probability, (table.w, table.t)), shape=(size, size))
    made.sort_indices()
    return made
