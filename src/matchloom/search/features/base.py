"""What a piece of evidence is: one number for each answer, that adds up over what the question holds."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

import scipy.sparse as sp

from matchloom.search.entries import Floats
from matchloom.search.reader import Query, ReadTexts


class Known(NamedTuple):
    """A collection as it is read: different questions, texts of answers, and which question is known for which answer.

    `member` is (questions, answers), 1 where the answer has the question.
    """

    questions: ReadTexts
    texts: ReadTexts
    member: sp.csr_array

    def answers_of(self, row: int) -> list[int]:
        """The answers that have this question."""
        return self.member.indices[self.member.indptr[row] : self.member.indptr[row + 1]].tolist()  # type: ignore[no-any-return]


class Evidence(Protocol):
    """One way to compare a question with every answer. Higher speaks for the answer.

    `left_out` is what `scores` would be without that question in the collection, with the same counts of words (idf,
    mean lengths): exactly, or by folds where there is no closed form. `contributions` belong to the question's terms or
    features, as `reads` says (or to features of its own), and add up to the score; those of `outside` to the score of a
    text that is not in the collection.
    """

    name: str
    reads: Literal["terms", "features", "own"]

    def scores(self, read: Query) -> Floats:
        """One score for each answer. (A,)"""
        ...

    def left_out(self, row: int) -> Floats:
        """The scores of a known question, if it were not known. (A,)"""
        ...

    def contributions(self, read: Query, answer: int) -> Floats:
        """What each term or feature of the question adds to the answer's score."""
        ...

    def outside(self, read: Query, text: Query) -> Floats:
        """The same for a text that is not in the collection and has no questions."""
        ...
