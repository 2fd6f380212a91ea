"""Ridge regression on one-hot entries: a linear classifier, one entry against all others, in closed form.

Examples are the known questions and the texts of the answers, rows of X; Y is 1 where an example is of an entry.

    alpha         = (X X' + noise I)^-1 Y
    score         = x X' alpha
    leave one out = Y_i - alpha_i / ((X X' + noise I)^-1)_ii        exactly, without a second fit
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Columns, Floats, Ids, Sparse, Table
from matchloom.search.features.base import Arrays, Known, Reads, inside, prefixed
from matchloom.search.queries import Queries

LARGEST = 3_000  # examples of a system that is solved
_NOISE = 0.3


class Ridge:
    """The regression, up to 3,000 examples."""

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
        own, entries = self._target, np.zeros(self._target.shape[1])
        entries[own.indices[own.indptr[row] : own.indptr[row + 1]]] = 1.0
        left: Floats = entries - self._dual.values[row] / self._diagonal[row]
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
    def load(cls, arrays: Arrays) -> Ridge:
        """From what was saved."""
        dual = arrays["dual"]
        return cls(Columns(inside("examples", arrays), len(dual)), dual)


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
