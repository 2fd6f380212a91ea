"""What a feature is: one number for each entry, that adds up over what the question holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Floats, Ids
from matchloom.search.queries import KnownTexts, Queries

Arrays = Mapping[str, NDArray[Any]]
Reads = Literal["terms", "vectors", "own"]


class Known(NamedTuple):
    """Entries as they were read: different questions, texts of answers, and which question is known for which entry.

    `member` is (questions, entries), 1 where the entry has the question.
    """

    questions: KnownTexts
    texts: KnownTexts
    member: sp.csr_array

    def entries_of(self, row: int) -> list[int]:
        """The entries that have this question."""
        return self.member.indices[self.member.indptr[row] : self.member.indptr[row + 1]].tolist()  # type: ignore[no-any-return]


class Feature(Protocol):
    """One way to compare a question with entries. Higher speaks for the entry.

    `leave_one_out` is what `scores` would be without that question in the collection, with the same counts of words
    (idf, mean lengths): exactly, or by folds where there is no closed form. `contributions` belong to the question's
    terms or to the features of its vector, as `reads` says (or to features of its own), and add up to the score; those
    of `outside` to the score of a text that is not in the collection.
    """

    name: str
    reads: Reads

    def scores(self, queries: Queries) -> Floats:
        """One score for each question and entry. (N, A)"""
        ...

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries. (C,)"""
        ...

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question, as if it were not known. (A,)"""
        ...

    def contributions(self, query: Queries, entry: int) -> Floats:
        """What each term or feature of the question adds to the entry's score."""
        ...

    def outside(self, query: Queries, text: Queries) -> Floats:
        """The same for a text that is not in the collection and has no questions."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved: all that `scores`, `some` and `contributions` need."""
        ...


def prefixed(name: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Arrays under a name."""
    return {f"{name}.{key}": value for key, value in arrays.items()}


def inside(name: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """The arrays that were saved under a name."""
    start = f"{name}."
    return {key.removeprefix(start): value for key, value in arrays.items() if key.startswith(start)}
