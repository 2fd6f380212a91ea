"""A linear support vector machine, one answer against all others: what one would try first where answers repeat.

Examples are the known questions and the texts of the answers, so that every answer is a class; features are those of
`search.features.tfidf`. What it would say to a question that was left out has no closed form: questions are parted
into five folds by their digests, and each fold is asked of a machine that learnt from the others.

Weights are kept as single precision numbers from the start, so that a saved ranker reads them back with the same bits
and need not learn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.search.entries import Floats, Ids
from matchloom.search.features.tfidf import WordsAndLetters
from matchloom.search.reader import Query

_FOLDS = 5


class LinearWeights(NamedTuple):
    """A weight for each feature and class, and what each class has to begin with."""

    weights: NDArray[np.float32]  # (F, A)
    bias: NDArray[np.float32]  # (A,)

    def fits(self, features: int, classes: int) -> bool:
        """Whether these are weights of so many features and classes."""
        return self.weights.shape == (features, classes) and self.bias.shape == (classes,)

    def scores(self, features: Ids, values: Floats) -> Floats:
        """One score for each class; nothing for a text of which nothing is known, whatever the bias. (A,)"""
        if not len(features):
            return np.zeros(len(self.bias))
        scores: Floats = values @ self.weights[features].astype(np.float64) + self.bias
        return scores

    def parts(self, features: Ids, values: Floats, answer: int) -> Floats:
        """What each feature adds to one of the scores, and at last the bias."""
        added = values * self.weights[features, answer].astype(np.float64)
        return np.append(added, float(self.bias[answer]) if len(features) else 0.0)


class SVMEvidence:
    """The machine's score for each answer. `weights` are those of a saved ranker, else they are learnt."""

    name = "svm"
    reads: Literal["terms", "features", "own"] = "own"

    def __init__(
        self,
        questions: Sequence[str],
        texts: Sequence[str],
        member: sp.csr_array,
        seen: WordsAndLetters,
        *,
        weights: LinearWeights | None = None,
        folds: bool = True,
    ) -> None:
        self.seen = seen
        links = member.tocoo()
        # Texts come after the questions; a question of several answers is an example of each.
        rows = np.concatenate([links.row, len(questions) + np.arange(len(texts))])
        classes = np.concatenate([links.col, np.arange(len(texts))])
        vectors = seen.vectors([*questions, *texts]) if weights is None or folds else None
        self.weights = learn_weights(vectors[rows], classes) if weights is None else weights  # type: ignore[index]
        self._left_out: Floats = np.zeros((len(questions) if folds else 0, len(texts)))
        parts = min(_FOLDS, len(self._left_out))
        for n in range(parts):
            held = np.arange(n, len(questions), parts)  # questions are in an order of digests
            kept = ~np.isin(rows, held)
            found = learn_weights(vectors[rows[kept]], classes[kept])  # type: ignore[index]
            self._left_out[held] = vectors[held] @ found.weights + found.bias  # type: ignore[index]

    def scores(self, read: Query) -> Floats:
        """One score for each answer."""
        return self.weights.scores(*self._read(read))

    def left_out(self, row: int) -> Floats:
        """The scores of a known question by a machine that learnt without it (and without the rest of its fold)."""
        left: Floats = self._left_out[row]
        return left

    def contributions(self, read: Query, answer: int) -> Floats:
        """What each feature of the question adds; the last is what the answer has to begin with."""
        return self.weights.parts(*self._read(read), answer)

    def outside(self, read: Query, text: Query) -> Floats:
        """A text that is no class says nothing."""
        return np.zeros(len(self.features(read)))

    def features(self, read: Query) -> Ids:
        """What `contributions` belong to; -1 is no feature."""
        return np.append(self._read(read)[0], -1)

    def _read(self, read: Query) -> tuple[Ids, Floats]:
        return read.once(self.name, self.seen.read)


def learn_weights(vectors: sp.csr_array, classes: Ids) -> LinearWeights:
    """scikit-learn's LinearSVC as it is, whose only draw has a fixed seed. Classes are 0, 1, ... without a gap."""
    from sklearn.svm import LinearSVC

    with catch_warnings():
        simplefilter("ignore", UserWarning)  # that there are many classes, which are answers
        machine = LinearSVC(random_state=0).fit(vectors, classes)
    weights, bias = machine.coef_.T, machine.intercept_
    if len(bias) == 1:  # of two classes scikit-learn tells the second only
        weights, bias = np.hstack([-weights, weights]), np.concatenate([-bias, bias])
    return LinearWeights(np.ascontiguousarray(weights, dtype=np.float32), bias.astype(np.float32))
