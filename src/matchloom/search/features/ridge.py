"""Ridge regression on one-hot entries: a linear classifier, one entry against all others, in closed form.

Examples are the known questions and the texts of the answers, rows of X; Y is 1 where an example is of an entry.

    dual     alpha = (X X' + noise I)^-1 Y               score = x X' alpha          up to 6,000 examples
    primal   W     = (Z' Z + noise I)^-1 Z' Y            score = z W                 above

Z are the columns of X that count most (by their squares; 6,000 of them, fewer where there are many entries). What
either says about an example that was left out needs no second fit:

    dual     Y_i - alpha_i / ((X X' + noise I)^-1)_ii
    primal   Y_i - (Y_i - z_i W) / (1 - h_i),    h_i = z_i (Z' Z + noise I)^-1 z_i'
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Columns, Floats, Ids, Sparse, Table
from matchloom.search.features.base import Arrays, Known, Reads, inside, prefixed
from matchloom.search.reader import Queries

LARGEST = 6_000  # rows of a system that is solved
_WEIGHTS = 60_000_000  # of the primal form
_NOISE = 0.3


class Ridge:
    """The dual form."""

    name = "ridge"
    reads: Reads = "vectors"

    def __init__(self, examples: Columns, dual: Floats) -> None:
        self._examples, self._dual = examples, Table(dual)

    @classmethod
    def fit(cls, known: Known, *, noise: float = _NOISE) -> Ridge:
        """Solve the system."""
        X, Y = _examples(known)
        inverse = _inverse((X @ X.T).toarray(), noise)
        dual: Floats = np.ascontiguousarray((Y.T.tocsr() @ inverse).T)  # Y is sparse, the inverse symmetric
        made = cls(Columns(X), dual)
        made._diagonal, made._target = inverse.diagonal().copy(), Y
        return made

    _diagonal: Floats
    _target: sp.csr_array

    def scores(self, queries: Queries) -> Floats:
        """One score for each question and entry."""
        return self._dual.dots(_as_questions(self._examples.dots(queries.vectors.below(self._examples.columns))))

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        found: Floats = self.scores(query)[0][rows]
        return found

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question, as if it were not known."""
        left: Floats = self._target[[row]].toarray().ravel() - self._dual.values[row] / self._diagonal[row]
        return left

    def contributions(self, query: Queries, entry: int) -> Floats:
        """What each feature of the question adds."""
        features, values = query.vectors[0]
        known = features < self._examples.columns
        added = np.zeros(len(features))
        added[known] = self._examples.weighted(features[known], self._dual.values[:, entry]) * values[known]
        return added

    def outside(self, query: Queries, text: Queries) -> Floats:
        """A text that is no class says nothing."""
        return np.zeros(len(query.vectors.columns))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        return {"dual": self._dual.values, **prefixed("examples", self._examples.arrays())}

    @classmethod
    def load(cls, arrays: Arrays) -> Ridge | PrimalRidge:
        """From what was saved, whichever form it had."""
        if "positions" in arrays:
            return PrimalRidge(arrays["positions"], arrays["weights"])
        dual = arrays["dual"]
        return cls(Columns(inside("examples", arrays), len(dual)), dual)


class PrimalRidge:
    """The primal form, for many examples."""

    name = "ridge"
    reads: Reads = "vectors"

    def __init__(self, positions: Ids, weights: Floats) -> None:
        self._positions, self._weights = positions, Table(weights)

    @classmethod
    def fit(
        cls, known: Known, rows: Ids | None = None, *, noise: float = _NOISE, largest: int = LARGEST
    ) -> PrimalRidge:
        """`rows` are the questions that may be left out; all without."""
        X, Y = _examples(known)
        squares = np.bincount(X.indices, X.data**2, minlength=X.shape[1])
        size = min(largest, X.shape[1], max(1, _WEIGHTS // Y.shape[1]))
        chosen = np.sort(np.argsort(-squares, kind="stable")[:size])
        positions: Ids = np.full(X.shape[1], -1)
        positions[chosen] = np.arange(size)
        Z = X[:, chosen].tocsr()
        inverse = _inverse((Z.T.tocsr() @ Z).toarray(), noise)
        made = cls(positions, inverse @ (Z.T.tocsr() @ Y).toarray())
        made._target, made._known = Y, known
        rows = np.arange(known.member.shape[0]) if rows is None else rows
        made._leverage = {row: _leverage(Z[[row]], inverse) for row in rows.tolist()}
        return made

    _target: sp.csr_array
    _known: Known
    _leverage: dict[int, float]

    def scores(self, queries: Queries) -> Floats:
        """One score for each question and entry."""
        return self._weights.dots(self._kept(queries.vectors))

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        found: Floats = self.scores(query)[0][rows]
        return found

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question, as if it were not known."""
        target = self._target[[row]].toarray().ravel()
        scores = self.scores(self._known.questions.row(row))[0]
        left: Floats = target - (target - scores) / (1 - self._leverage[row])
        return left

    def contributions(self, query: Queries, entry: int) -> Floats:
        """What each feature of the question adds."""
        features, values = query.vectors[0]
        at = np.where(features < len(self._positions), self._positions[features.clip(max=len(self._positions) - 1)], -1)
        added = np.zeros(len(features))
        added[at >= 0] = values[at >= 0] * self._weights.values[at[at >= 0], entry]
        return added

    def outside(self, query: Queries, text: Queries) -> Floats:
        """A text that is no class says nothing."""
        return np.zeros(len(query.vectors.columns))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        return {"positions": self._positions, "weights": self._weights.values}

    def _kept(self, vectors: Sparse) -> Sparse:
        """The features that have a weight, by their positions among these."""
        vectors = vectors.below(len(self._positions))
        at = self._positions[vectors.columns]
        kept = at >= 0
        owners = np.repeat(np.arange(vectors.count), np.diff(vectors.bounds))[kept]
        bounds = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=vectors.count))])
        return Sparse(bounds, at[kept], vectors.values[kept])


def _as_questions(products: Floats) -> Sparse:
    """Rows of numbers as sparse questions, without their zeros."""
    owners, columns = np.nonzero(products)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(products)))])
    return Sparse(bounds, columns, products[owners, columns])


def _examples(known: Known) -> tuple[sp.csr_array, sp.csr_array]:
    X = sp.vstack([known.questions.vectors, known.texts.vectors], format="csr").astype(np.float64)
    entries = known.member.shape[1]
    Y = sp.vstack([known.member, sp.eye_array(entries)], format="csr").astype(np.float64)
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
