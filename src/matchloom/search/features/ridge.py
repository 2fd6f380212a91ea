"""Ridge regression on one-hot answers: a linear classifier, one answer against all others, in closed form.

Examples are the known questions and the texts of the answers, rows of X; Y is 1 where an example is of an answer.

    dual     alpha = (X X' + noise I)^-1 Y               score = x X' alpha          up to 6,000 examples
    primal   W     = (Z' Z + noise I)^-1 Z' Y            score = z W                 above

Z are the columns of X that weigh most (by their squares; 6,000 of them, fewer where there are many answers). What
either says about an example that was left out needs no second fit:

    dual     Y_i - alpha_i / ((X X' + noise I)^-1)_ii
    primal   Y_i - (Y_i - z_i W) / (1 - h_i),    h_i = z_i (Z' Z + noise I)^-1 z_i'
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp

from matchloom.lexical.columns import Columns
from matchloom.search.entries import Floats, Ids
from matchloom.search.features.base import Known
from matchloom.search.reader import Query

LARGEST = 6_000  # rows of a system that is solved
_WEIGHTS = 60_000_000  # of the primal form
_NOISE = 0.3


class Ridge:
    """The dual form."""

    name = "ridge"
    reads: Literal["terms", "features", "own"] = "features"

    def __init__(self, known: Known, *, noise: float = _NOISE) -> None:
        X, Y = _examples(known)
        inverse = _inverse((X @ X.T).toarray(), noise)
        self._dual: Floats = np.ascontiguousarray((Y.T.tocsr() @ inverse).T)  # Y is sparse, the inverse symmetric
        self._diagonal: Floats = inverse.diagonal().copy()
        self._target = Y
        self._examples = Columns(X)

    def scores(self, read: Query) -> Floats:
        """One score for each answer."""
        scores: Floats = self._examples.dot(read.features, read.values) @ self._dual
        return scores

    def left_out(self, row: int) -> Floats:
        """The scores of a known question, if it were not known."""
        left: Floats = self._target[[row]].toarray().ravel() - self._dual[row] / self._diagonal[row]
        return left

    def contributions(self, read: Query, answer: int) -> Floats:
        """What each feature of the question adds."""
        return self._examples.weighted(read.features, self._dual[:, answer]) * read.values

    def outside(self, read: Query, text: Query) -> Floats:
        """A text that is no class says nothing."""
        return np.zeros(len(read.features))


class PrimalRidge:
    """The primal form, for many examples."""

    name = "ridge"
    reads: Literal["terms", "features", "own"] = "features"

    def __init__(self, known: Known, rows: Ids | None = None, *, noise: float = _NOISE, largest: int = LARGEST) -> None:
        """`rows` are the questions that may be left out; all without."""
        X, Y = _examples(known)
        squares = np.bincount(X.indices, X.data**2, minlength=X.shape[1])
        size = min(largest, X.shape[1], max(1, _WEIGHTS // Y.shape[1]))
        chosen = np.sort(np.argsort(-squares, kind="stable")[:size])
        self._place: Ids = np.full(X.shape[1], -1)
        self._place[chosen] = np.arange(size)
        Z = X[:, chosen].tocsr()
        inverse = _inverse((Z.T.tocsr() @ Z).toarray(), noise)
        self._weights: Floats = inverse @ (Z.T.tocsr() @ Y).toarray()
        self._target, self._known = Y, known
        rows = np.arange(known.member.shape[0]) if rows is None else rows
        self._leverage = {row: _leverage(Z[[row]], inverse) for row in rows.tolist()}

    def scores(self, read: Query) -> Floats:
        """One score for each answer."""
        places, kept = self._kept(read)
        scores: Floats = read.values[kept] @ self._weights[places]
        return scores

    def left_out(self, row: int) -> Floats:
        """The scores of a known question, if it were not known."""
        target = self._target[[row]].toarray().ravel()
        left: Floats = target - (target - self.scores(self._known.questions.row(row))) / (1 - self._leverage[row])
        return left

    def contributions(self, read: Query, answer: int) -> Floats:
        """What each feature of the question adds."""
        places, kept = self._kept(read)
        added = np.zeros(len(read.features))
        added[kept] = read.values[kept] * self._weights[places, answer]
        return added

    def outside(self, read: Query, text: Query) -> Floats:
        """A text that is no class says nothing."""
        return np.zeros(len(read.features))

    def _kept(self, read: Query) -> tuple[Ids, Ids]:
        places = self._place[read.features]
        kept = np.flatnonzero(places >= 0)
        return places[kept], kept


def _examples(known: Known) -> tuple[sp.csr_array, sp.csr_array]:
    X = sp.vstack([known.questions.vectors, known.texts.vectors], format="csr").astype(np.float64)
    answers = known.member.shape[1]
    Y = sp.vstack([known.member, sp.eye_array(answers)], format="csr").astype(np.float64)
    return X, Y


def _inverse(gram: Floats, noise: float) -> Floats:
    """Of gram + noise I, by Cholesky; half the work of a general inverse."""
    from scipy.linalg import lapack

    gram[np.diag_indices_from(gram)] += noise
    factor, _ = lapack.dpotrf(gram, lower=1, overwrite_a=1)
    half, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    half = np.tril(half)
    inverse: Floats = half + np.tril(half, -1).T
    return inverse


def _leverage(z: sp.csr_array, inverse: Floats) -> float:
    return float(z.data @ inverse[np.ix_(z.indices, z.indices)] @ z.data)
