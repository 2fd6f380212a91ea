"""A linear support vector machine, one entry against all others: what one would try first where answers repeat.

Examples are the known questions and the texts of the answers, so that every entry is a class; features are those of
`search.features.tfidf`. What it would say to a question that was left out has no closed form: questions are parted
into five folds by their digests, and each fold is asked of a machine that learnt from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Floats, Ids, Sparse, Table
from matchloom.search.features.base import Arrays, Reads, inside, prefixed
from matchloom.search.features.tfidf import TfIdf
from matchloom.search.reader import Queries

_FOLDS = 5


class LinearWeights(NamedTuple):
    """A weight for each feature and class, and what each class has to begin with."""

    weights: NDArray[np.float32]  # (F, A)
    bias: NDArray[np.float32]  # (A,)

    def scores(self, questions: Sparse) -> Floats:
        """One score for each class; nothing for a text of which nothing is known, whatever the bias. (N, A)"""
        found = Table(self.weights).dots(questions)
        found += np.where(np.diff(questions.bounds)[:, None] > 0, self.bias.astype(np.float64), 0.0)
        return found

    def parts(self, features: Ids, values: Floats, entry: int) -> Floats:
        """What each feature adds to one of the scores, and at last the bias."""
        added = values * self.weights[features, entry].astype(np.float64)
        return np.append(added, float(self.bias[entry]) if len(features) else 0.0)


class SVMFeature:
    """The machine's score for each entry."""

    name = "svm"
    reads: Reads = "own"

    def __init__(self, seen: TfIdf, weights: LinearWeights) -> None:
        self.seen, self.weights = seen, weights
        self._left_out: Floats = np.empty((0, 0))

    @classmethod
    def fit(cls, questions: Queries, texts: Queries, member: sp.csr_array, *, folds: bool = True) -> SVMFeature:
        """Learn, and with `folds` also what is said of questions that are left out."""
        said, words = [*questions.texts, *texts.texts], [*questions.words, *texts.words]
        seen = TfIdf.fit(said, words)
        links = member.tocoo()
        # Texts come after the questions; a question of several entries is an example of each.
        rows = np.concatenate([links.row, len(questions) + np.arange(len(texts))])
        classes = np.concatenate([links.col, np.arange(len(texts))])
        vectors = seen.matrix(said, words)
        made = cls(seen, learn_weights(vectors[rows], classes))
        made._left_out = np.zeros((len(questions) if folds else 0, len(texts)))
        parts = min(_FOLDS, len(made._left_out))
        for n in range(parts):
            held = np.arange(n, len(questions), parts)  # questions are in an order of digests
            kept = ~np.isin(rows, held)
            found = learn_weights(vectors[rows[kept]], classes[kept])
            made._left_out[held] = vectors[held] @ found.weights + found.bias
        return made

    def scores(self, queries: Queries) -> Floats:
        """One score for each question and entry."""
        return self.weights.scores(self._read(queries))

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        found: Floats = self.scores(query)[0][rows]
        return found

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question by a machine that learnt without it (and without the rest of its fold)."""
        left: Floats = self._left_out[row]
        return left

    def contributions(self, query: Queries, entry: int) -> Floats:
        """What each feature of the question adds; the last is what the entry has to begin with."""
        return self.weights.parts(*self._read(query)[0], entry)

    def outside(self, query: Queries, text: Queries) -> Floats:
        """A text that is no class says nothing."""
        return np.zeros(len(self.features(query)))

    def features(self, query: Queries) -> Ids:
        """What `contributions` belong to; -1 is no feature."""
        return np.append(self._read(query).columns, -1)

    def _read(self, queries: Queries) -> Sparse:
        return queries.once(self.name, lambda asked: self.seen.read(asked.texts, asked.words))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        return {"weights": self.weights.weights, "bias": self.weights.bias, **prefixed("tfidf", self.seen.arrays())}

    @classmethod
    def load(cls, arrays: Arrays) -> SVMFeature:
        """From what was saved."""
        return cls(TfIdf.load(inside("tfidf", arrays)), LinearWeights(arrays["weights"], arrays["bias"]))


def learn_weights(vectors: sp.csr_array, classes: Ids) -> LinearWeights:
    """scikit-learn's LinearSVC as it is, whose only draw has a fixed seed. Classes are 0, 1, ... without a gap."""
    from sklearn.svm import LinearSVC

    with catch_warnings():
        simplefilter("ignore", UserWarning)  # that there are many classes, which are entries
        machine = LinearSVC(random_state=0).fit(vectors, classes)
    weights, bias = machine.coef_.T, machine.intercept_
    if len(bias) == 1:  # of two classes scikit-learn tells the second only
        weights, bias = np.hstack([-weights, weights]), np.concatenate([-bias, bias])
    return LinearWeights(np.ascontiguousarray(weights, dtype=np.float32), bias.astype(np.float32))


def machine_of(seen: TfIdf, texts: Sequence[str], words: Sequence[Sequence[str]], classes: Ids) -> LinearWeights:
    """The weights that examples ask for; nothing where there is nothing to tell apart."""
    size = (seen.size, int(classes.max()) + 1)
    if min(size) > 0 and size[1] > 1:
        return learn_weights(seen.matrix(texts, words), classes)
    return LinearWeights(np.zeros(size, dtype=np.float32), np.zeros(size[1], dtype=np.float32))
