"""A sparse matrix that is asked by its columns: a question has few features, and few answers have each of them.

Sums run over a question's features in their order, so that a score is the same to the bit however many questions are
asked together.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST = 8  # where more than this part of a matrix is asked for, reading all of it is quicker


class Columns:
    """A (rows, columns) matrix."""

    def __init__(self, matrix: sp.csr_array | sp.csc_array) -> None:
        self._matrix = matrix.tocsc()
        self.rows: int = matrix.shape[0]

    def dot(self, columns: Ids, values: Floats) -> Floats:
        """The sum of these columns times their values, in their order; a column may come twice. (rows,)"""
        large = self._matrix.dtype == np.float64 and self._size(columns) > self._matrix.nnz // _MOST
        if large and bool((columns[1:] > columns[:-1]).all()):
            dense = np.zeros(self._matrix.shape[1])
            dense[columns] = values
            return np.asarray(self._matrix @ dense)
        entries, owners = self._entries(columns)
        weights = self._matrix.data[entries] * values[owners]
        return np.bincount(self._matrix.indices[entries], weights, minlength=self.rows).astype(np.float64, copy=False)

    def row(self, row: int, columns: Ids) -> Floats:
        """One row's values in these columns."""
        entries, owners = self._entries(columns)
        here = self._matrix.indices[entries] == row
        return np.bincount(owners[here], self._matrix.data[entries[here]], minlength=len(columns)).astype(np.float64)

    def weighted(self, columns: Ids, weights: Floats) -> Floats:
        """For each of these columns the sum of its values times the weights of the rows."""
        entries, owners = self._entries(columns)
        values = self._matrix.data[entries] * weights[self._matrix.indices[entries]]
        return np.bincount(owners, values, minlength=len(columns)).astype(np.float64)

    def _size(self, columns: Ids) -> int:
        return int((self._matrix.indptr[columns + 1] - self._matrix.indptr[columns]).sum())

    def _entries(self, columns: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the entries of the columns stand, and of which column each is."""
        starts = self._matrix.indptr[columns].astype(np.int64)
        sizes = self._matrix.indptr[columns + 1].astype(np.int64) - starts
        owners = np.repeat(np.arange(len(columns)), sizes)
        return np.arange(len(owners)) + (starts - (np.cumsum(sizes) - sizes))[owners], owners
