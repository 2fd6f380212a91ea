"""Texts as a collection read them, once: for every feature, for their probabilities and for their explanations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from matchloom.lexical.columns import Floats, Rows, Sparse

T = TypeVar("T")


@dataclass(eq=False)
class Queries:
    """Some texts as they were read once: for every feature, for their probabilities and for their explanations.

    `terms` are their different stems and how often they have each, `vectors` their features and values.
    """

    texts: Sequence[str]
    words: Sequence[Sequence[str]]
    terms: Sparse
    vectors: Sparse
    coverage: Floats  # (N,) which part of the different stems the collection has, function words apart
    _own: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def once(self, name: str, make: Callable[[Queries], T]) -> T:
        """What `make` makes of the texts, when it is first asked for: for features that read in their own way."""
        if name not in self._own:
            self._own[name] = make(self)
        found: T = self._own[name]
        return found

    def one(self, n: int) -> Queries:
        """One of them."""
        if len(self) == 1:
            return self
        terms, vectors = Sparse.one(*self.terms[n]), Sparse.one(*self.vectors[n])
        return Queries([self.texts[n]], [self.words[n]], terms, vectors, self.coverage[[n]])


@dataclass(eq=False)
class KnownTexts:
    """Texts of a collection, as they were read when it was fitted: counts of stems and vectors of features, by rows."""

    texts: Sequence[str]
    words: Sequence[Sequence[str]]
    counts: sp.csr_array  # (texts, features)
    vectors: sp.csr_array  # (texts, features), in single precision

    def __len__(self) -> int:
        return len(self.texts)

    def row(self, n: int) -> Queries:
        """One of them, as it was read."""
        terms, vectors = self.count_rows[n], self.vector_rows[n]
        return Queries([self.texts[n]], [self.words[n]], Sparse.one(*terms), Sparse.one(*vectors), np.ones(1))

    @cached_property
    def count_rows(self) -> Rows:
        """The counts, to be asked by rows."""
        return Rows(self.counts)

    @cached_property
    def vector_rows(self) -> Rows:
        """The vectors, to be asked by rows."""
        return Rows(self.vectors)


def matrix_of(read: Sparse, size: int) -> sp.csr_array:
    """Rows of texts as a sparse matrix. (texts, features)"""
    return sp.csr_array((read.values, read.columns, read.bounds), shape=(read.count, size))
