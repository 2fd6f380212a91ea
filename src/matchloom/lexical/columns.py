"""Tables that sparse questions are multiplied with: stored by columns, by rows, or dense.

A question has few columns, and few rows have each of them. Sums run over a question's columns in their order, one
addition at a time, by a native kernel or by numpy: a score is the same to the bit alone, among other questions, for all
rows or for some, and on any processor.

A table is plain arrays, which may be mapped from a file: `starts` (int64), `places` (int32) and `data` (float32 or
float64).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import local
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.kernels.native import address, library

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]
_LOOKED_AT = 2**26  # places
_LONG = 8  # a column that more than one in so many rows has comes last when the best rows are looked for


@dataclass(frozen=True, slots=True)
class Sparse:
    """Some questions, each with columns (ascending) and their values; question n has those from bounds[n] on."""

    bounds: Ids  # (N + 1,)
    columns: Ids
    values: Floats

    @classmethod
    def one(cls, columns: Ids, values: Floats) -> Sparse:
        """A single question."""
        return cls(np.array([0, len(columns)]), columns, values)

    def __getitem__(self, n: int) -> tuple[Ids, Floats]:
        own = slice(self.bounds[n], self.bounds[n + 1])
        return self.columns[own], self.values[own]

    @property
    def count(self) -> int:
        """How many questions."""
        return len(self.bounds) - 1

    def below(self, size: int) -> Sparse:
        """Without columns from `size` on, which a table that was made before them does not have."""
        if not len(self.columns) or self.columns.max() < size:
            return self
        kept = self.columns < size
        sizes = np.add.reduceat(np.append(kept, False), self.bounds[:-1]) * (np.diff(self.bounds) > 0)
        return Sparse(np.concatenate([[0], np.cumsum(sizes)]), self.columns[kept], self.values[kept])


class Columns:
    """A (rows, columns) table that is stored by columns."""

    def __init__(self, matrix: sp.csr_array | sp.csc_array | Arrays, rows: int | None = None) -> None:
        """From a sparse matrix, or from the arrays of one that was saved and its number of rows."""
        if isinstance(matrix, Mapping):
            self.rows: int = int(rows or 0)
            self.starts, self.places, self.data = _checked(matrix, self.rows)
        else:
            made = matrix.tocsc()
            made.sort_indices()
            self.rows = made.shape[0]
            self.starts, self.places = made.indptr.astype(np.int64), made.indices.astype(np.int32, copy=False)
            self.data = made.data if made.data.dtype == np.float32 else made.data.astype(np.float64, copy=False)
        self._scratch = local()

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.starts) - 1

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `Columns(arrays, rows)` takes."""
        return {"starts": self.starts, "places": self.places, "data": self.data}

    def dot(self, columns: Ids, values: Floats) -> Floats:
        """The sum of these columns times their values, in their order; a column may come twice. (rows,)"""
        found: Floats = self.dots(Sparse.one(columns, values))[0]
        return found

    def dots(self, questions: Sparse) -> Floats:
        """The same for each of some questions. (N, rows)"""
        native = library()
        if native is None:
            return np.stack([self._dot(*questions[n]) for n in range(questions.count)])
        out = np.empty((questions.count, self.rows))
        bounds, columns, values = _plain(questions)
        native.columns_dot(*self._table, self.rows, questions.count, *_at(bounds, columns, values, out))
        return out

    def best(self, columns: Ids, values: Floats, most: int, alive: NDArray[np.bool_] | None = None) -> Ids:
        """The rows with the highest sums above 0, best first, equal ones by row; of those that are alive.

        Values are above 0, and so are all entries. What can add little to any row is looked up last.
        """
        native = library()
        if native is None:
            return self._best(columns, values, most, alive)
        sums = self._sums
        out = np.empty(most, dtype=np.int64)
        columns, values = np.ascontiguousarray(columns, np.int64), np.ascontiguousarray(values, np.float64)
        mask = None if alive is None else address(np.ascontiguousarray(alive))
        count = (self.rows, len(columns))
        found = native.best_rows(
            *self._table, self._highest, *count, *_at(columns, values), most, mask, sums, address(out)
        )
        if found < 0:
            raise MemoryError("the native search ran out of memory")
        return out[:found]

    def row(self, row: int, columns: Ids) -> Floats:
        """One row's values in these columns."""
        entries, owners = self._entries(columns)
        here = self.places[entries] == row
        return np.bincount(owners[here], self.data[entries[here]], minlength=len(columns)).astype(np.float64)

    def weighted(self, columns: Ids, weights: Floats) -> Floats:
        """For each of these columns the sum of its values times the weights of the rows."""
        entries, owners = self._entries(columns)
        values = self.data[entries] * weights[self.places[entries]]
        return np.bincount(owners, values, minlength=len(columns)).astype(np.float64)

    @cached_property
    def highest(self) -> Floats:
        """The highest value of each column; 0 where it has none. (columns,)"""
        found = np.zeros(self.columns)
        filled = np.flatnonzero(np.diff(self.starts))
        if len(filled):
            found[filled] = np.maximum.reduceat(self.data, self.starts[filled])
        return found

    @cached_property
    def _highest(self) -> int:
        return address(self.highest)

    @cached_property
    def _table(self) -> tuple[int, ...]:
        """The arrays as the kernel takes them."""
        return (self.data.dtype == np.float64, *_at(self.starts, self.places, self.data))

    @property
    def _sums(self) -> int:
        """Where zeros of this thread's own are, one for each row: the kernel leaves zeros behind."""
        found: int | None = getattr(self._scratch, "address", None)
        if found is None:
            self._scratch.sums = np.zeros(self.rows)
            found = self._scratch.address = address(self._scratch.sums)
        return found

    def _dot(self, columns: Ids, values: Floats) -> Floats:
        entries, owners = self._entries(columns)
        weights = self.data[entries].astype(np.float64) * values[owners]
        return np.bincount(self.places[entries], weights, minlength=self.rows).astype(np.float64, copy=False)

    def _best(self, columns: Ids, values: Floats, most: int, alive: NDArray[np.bool_] | None) -> Ids:
        is_long = (self.starts[columns + 1] - self.starts[columns]) * _LONG > self.rows
        order = np.argsort(is_long, kind="stable")  # as the kernel adds them up
        sums = self._dot(columns[order], values[order])
        rows = np.flatnonzero(sums > 0 if alive is None else (sums > 0) & alive)
        return rows[np.argsort(-sums[rows], kind="stable")][:most]

    def _entries(self, columns: Ids) -> tuple[Ids, Ids]:
        """Where the entries of the columns stand, and of which column each is."""
        starts = self.starts[columns]
        sizes = self.starts[columns + 1] - starts
        owners = np.repeat(np.arange(len(columns)), sizes)
        return np.arange(len(owners)) + (starts - (np.cumsum(sizes) - sizes))[owners], owners


class Rows:
    """A (rows, columns) table that is stored by rows: for some rows of many, or for few rows."""

    def __init__(self, matrix: sp.csr_array | Arrays, columns: int | None = None) -> None:
        """From a sparse matrix, or from the arrays of one that was saved and its number of columns."""
        self.starts: Ids
        self.places: NDArray[np.int32]
        self.data: NDArray[Any]
        if isinstance(matrix, Mapping):
            self.starts, self.places, self.data = _checked(matrix, int(columns or 0))
        else:
            made = matrix.tocsr()
            made.sort_indices()
            self.starts, self.places = made.indptr.astype(np.int64), made.indices.astype(np.int32, copy=False)
            self.data = made.data if made.data.dtype == np.float32 else made.data.astype(np.float64, copy=False)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> tuple[Ids, Floats]:
        own = slice(self.starts[row], self.starts[row + 1])
        return self.places[own].astype(np.int64), self.data[own].astype(np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `Rows(arrays)` takes."""
        return {"starts": self.starts, "places": self.places, "data": self.data}

    def dot(self, question: Floats, rows: Ids | None = None) -> Floats:
        """The product of each of these rows, or of all, with a question as a dense vector. (rows,)"""
        rows = np.arange(len(self)) if rows is None else np.ascontiguousarray(rows, np.int64)
        native = library()
        if native is None:
            return self._dot(question, rows)
        out = np.empty(len(rows))
        native.rows_dot(*self.at, len(rows), *_at(rows, question, out))
        return out

    @cached_property
    def at(self) -> tuple[int, ...]:
        """The arrays as a kernel takes them."""
        return (self.data.dtype == np.float64, *_at(self.starts, self.places, self.data))

    def _dot(self, question: Floats, rows: Ids) -> Floats:
        sizes = self.starts[rows + 1] - self.starts[rows]
        owners = np.repeat(np.arange(len(rows)), sizes)
        entries = np.arange(len(owners)) + (self.starts[rows] - (np.cumsum(sizes) - sizes))[owners]
        weights = self.data[entries].astype(np.float64) * question[self.places[entries]]
        return np.bincount(owners, weights, minlength=len(rows)).astype(np.float64, copy=False)


class Table:
    """A dense (columns, width) table of single or double precision, of which a question takes some rows."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = np.ascontiguousarray(values)
        if self.values.ndim != 2 or self.values.dtype not in (np.float32, np.float64):
            raise ValueError(f"a table of shape {values.shape} and type {values.dtype}")

    def dots(self, questions: Sparse) -> Floats:
        """The sum of each question's rows times their values. (N, width)"""
        width = self.values.shape[1]
        native = library()
        if native is None:
            return np.stack([self._dot(*questions[n]) for n in range(questions.count)])
        out = np.empty((questions.count, width))
        bounds, columns, values = _plain(questions)
        wide = self.values.dtype == np.float64
        native.dense_dot(wide, *_at(self.values), width, questions.count, *_at(bounds, columns, values, out))
        return out

    def _dot(self, columns: Ids, values: Floats) -> Floats:
        total = np.zeros(self.values.shape[1])
        for column, value in zip(columns.tolist(), values.tolist(), strict=True):
            total += self.values[column].astype(np.float64) * value
        return total


def _checked(arrays: Arrays, size: int) -> tuple[Ids, NDArray[np.int32], NDArray[Any]]:
    """The arrays of a saved table, if they fit together: a kernel asks no more.

    Places of very large tables are not looked at, for that would read a whole file which is else mapped.
    """
    starts, places, data = (arrays[name] for name in ("starts", "places", "data"))
    kinds = starts.dtype == np.int64 and places.dtype == np.int32 and data.dtype in (np.float32, np.float64)
    if not kinds or not starts.ndim == places.ndim == data.ndim == 1 or not len(starts):
        raise ValueError(f"arrays of types {starts.dtype}, {places.dtype} and {data.dtype}")
    fits = len(places) == len(data) == starts[-1] and starts[0] == 0 and bool((np.diff(starts) >= 0).all())
    if not fits:
        raise ValueError("places where columns or rows start that do not fit")
    if 0 < len(places) <= _LOOKED_AT and not 0 <= int(places.min()) <= int(places.max()) < size:
        raise ValueError(f"places outside {size}")
    return starts, places, data


def products(table: NDArray[np.float32], vector: Floats, rows: Ids | None = None) -> Floats:
    """The product of these rows of a dense table, or of all, with a vector: the same to the bit for each row."""
    size = table.shape[1]
    if vector.shape != (size,):
        raise ValueError(f"a vector of shape {vector.shape} for rows of {size}")
    if size % 8:
        table, vector = np.pad(table, [(0, 0), (0, -size % 8)]), np.pad(vector, (0, -size % 8))
    native = library()
    if native is None:
        return _products(table if rows is None else table[rows], vector)
    table, vector = np.ascontiguousarray(table, np.float32), np.ascontiguousarray(vector, np.float64)
    chosen = None if rows is None else np.ascontiguousarray(rows, np.int64)
    out = np.empty(len(table) if chosen is None else len(chosen))
    where = None if chosen is None else address(chosen)
    native.vectors_dot(address(table), table.shape[1], len(out), where, *_at(vector, out))
    return out


def _products(table: NDArray[np.float32], vector: Floats) -> Floats:
    lanes = np.zeros((len(table), 8))
    for start in range(0, table.shape[1], 8):
        lanes += table[:, start : start + 8].astype(np.float64) * vector[start : start + 8]
    total = lanes[:, 0].copy()
    for lane in range(1, 8):
        total += lanes[:, lane]
    return total


def _plain(questions: Sparse) -> Sequence[NDArray[Any]]:
    bounds, columns = (np.ascontiguousarray(side, np.int64) for side in (questions.bounds, questions.columns))
    return bounds, columns, np.ascontiguousarray(questions.values, np.float64)


def _at(*arrays: NDArray[Any]) -> list[int]:
    return [address(array) for array in arrays]
