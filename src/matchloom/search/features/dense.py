"""Evidence from a pretrained encoder: what a question means, beside which words it has.

A text is the mean of what the encoder made of its pieces, of length one (`models/sentence_bert.py`). x is the question,
X the rows of all known questions and texts, Y is 1 where a row is of an answer.

    nearest   the highest cosine of x with a known question of the answer, or with its text
    text      the cosine of x with the text of the answer
    ridge     x W,   W = (X' X + noise I)^-1 X' Y: a linear classifier, one answer against all others

What each says about a question that was left out is exact. Of the ridge it needs no second fit:

    y_i - (y_i - x_i W) / (1 - h_i),    h_i = x_i (X' X + noise I)^-1 x_i'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.search.entries import Floats
from matchloom.search.features.base import Evidence, Known
from matchloom.search.reader import Query

if TYPE_CHECKING:  # torch comes with it, and only who has an encoder needs it
    from matchloom.matcher import Matcher

_NOISE = 0.3
_LEAST = 1e-9
_ASKED = 1024
_LONGEST = 1200  # letters of a text that are read, about


class Meanings:
    """The vectors of texts, each made once. Fits on parts of one file share them."""

    def __init__(self, matcher: Matcher, vectors: dict[str, NDArray[np.float32]] | None = None) -> None:
        """`matcher` has sentence vectors; `vectors` are those that are known already."""
        self.matcher = matcher
        self.vectors: dict[str, NDArray[np.float32]] = {} if vectors is None else vectors
        self.asked = lru_cache(_ASKED)(self._asked)

    def of(self, texts: Sequence[str], *, progress: bool = False) -> Floats:
        """(N, D), kept for the next time."""
        new = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        if new:
            self.vectors.update(zip(new, self.matcher.vectors(new, progress=progress), strict=True))
        return np.stack([self.vectors[text] for text in texts]).astype(np.float64)

    def _asked(self, text: str) -> Floats:
        """The vector of a text from outside, (D,); of these the last are kept, for several pieces of evidence ask."""
        known = self.vectors.get(text)
        return (self.matcher.vectors([text])[0] if known is None else known).astype(np.float64)

    def cells(self, question: str, text: str) -> Floats:
        """What each pair of words adds to the cosine of two texts. (L, R)"""
        grid: Floats = self.matcher.trace(question, text)[2].grid[0].astype(np.float64)
        return grid


class KnownMeanings(NamedTuple):
    """The vectors of a collection: its different questions, and the texts of its answers."""

    meanings: Meanings
    questions: Floats  # (questions, D)
    texts: Floats  # (answers, D)

    @classmethod
    def of(cls, meanings: Meanings, questions: Sequence[str], texts: Sequence[str], *, progress: bool) -> KnownMeanings:
        """Of these texts, which are encoded where they are new."""
        vectors = meanings.of([*questions, *texts], progress=progress)
        return cls(meanings, vectors[: len(questions)], vectors[len(questions) :])

    def evidence(self, known: Known, *, words: bool, asked: bool) -> list[Evidence]:
        """What it says of a collection beside words, or alone; without `asked` of its texts alone."""
        if not asked:
            return [MeaningOfText(known, self)]
        kinds = (MeaningOfNearest, MeaningOfText, MeaningRidge)
        return [kind(known, self) for kind in (kinds if words else kinds[:1])]


def encoding_seconds(texts: Sequence[str]) -> float:
    """A guess of how long a small encoder needs for these texts on one core."""
    return sum(0.006 + 1.5e-4 * min(len(text), _LONGEST) for text in texts)


class _Meaning(ABC):
    """What the pieces of evidence have in common: a question is one vector, of which no word has a part of its own."""

    name: str
    reads: Literal["terms", "features", "own"] = "own"

    def __init__(self, known: Known, vectors: KnownMeanings) -> None:
        self._known, self.vectors = known, vectors

    def scores(self, read: Query) -> Floats:
        """One score for each answer."""
        return self._of(self.vectors.meanings.asked(read.text))

    def contributions(self, read: Query, answer: int) -> Floats:
        """The score itself: how words share in it is told by `tracing`."""
        return self.scores(read)[[answer]]

    def outside(self, read: Query, text: Query) -> Floats:
        """The cosine with a text that is not in the collection."""
        asked = self.vectors.meanings.asked
        return np.array([asked(read.text) @ asked(text.text)])

    @abstractmethod
    def _of(self, x: Floats) -> Floats:
        """The scores of a question with this vector."""

    @abstractmethod
    def left_out(self, row: int) -> Floats:
        """The scores of a known question, if it were not known."""


class MeaningOfNearest(_Meaning):
    """Nearness to the best of what is known of an answer."""

    name = "meaning_nearest"

    def __init__(self, known: Known, vectors: KnownMeanings) -> None:
        super().__init__(known, vectors)
        links = known.member.tocoo()
        answers = len(vectors.texts)
        rows = np.concatenate([links.row, len(vectors.questions) + np.arange(answers)])
        order = np.argsort(np.concatenate([links.col, np.arange(answers)]), kind="stable")
        self._rows = rows[order]  # of one answer after the other, its text among them
        sizes = 1 + np.bincount(links.col, minlength=answers)
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def _of(self, x: Floats, without: int | None = None) -> Floats:
        cosines = np.concatenate([self.vectors.questions @ x, self.vectors.texts @ x])
        if without is not None:
            cosines[without] = -np.inf
        best: Floats = np.maximum.reduceat(cosines[self._rows], self._starts)
        return best

    def left_out(self, row: int) -> Floats:
        """The scores of a known question, if it were not known."""
        return self._of(self.vectors.questions[row], row)


class MeaningOfText(_Meaning):
    """Nearness to the text of an answer."""

    name = "meaning_text"

    def _of(self, x: Floats) -> Floats:
        cosines: Floats = self.vectors.texts @ x
        return cosines

    def left_out(self, row: int) -> Floats:
        """The scores of a known question: the same, for the texts do not depend on it."""
        return self._of(self.vectors.questions[row])


class MeaningRidge(_Meaning):
    """A linear classifier over meanings."""

    name = "meaning_ridge"

    def __init__(self, known: Known, vectors: KnownMeanings) -> None:
        super().__init__(known, vectors)
        X = np.vstack([vectors.questions, vectors.texts])
        Y = sp.vstack([known.member, sp.eye_array(len(vectors.texts))], format="csr").astype(np.float64)
        self._inverse = np.linalg.inv(X.T @ X + _NOISE * np.eye(X.shape[1]))
        self._weights: Floats = self._inverse @ (Y.T.tocsr() @ X).T

    def _of(self, x: Floats) -> Floats:
        scores: Floats = x @ self._weights
        return scores

    def left_out(self, row: int) -> Floats:
        """The scores of a known question, if it were not known."""
        x = self.vectors.questions[row]
        target = self._known.member[[row]].toarray().ravel()
        left: Floats = target - (target - self._of(x)) / max(1 - x @ self._inverse @ x, _LEAST)
        return left

    def outside(self, read: Query, text: Query) -> Floats:
        """A text that is no class says nothing."""
        return np.zeros(1)
