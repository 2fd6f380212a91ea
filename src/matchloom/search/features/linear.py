"""Linear classifiers over TF-IDF, one entry a class: what one would try first where answers repeat.

    svm      a linear support vector machine, one entry against all others (scikit-learn's LinearSVC), at any size
    softmax  multinomial logistic regression, up to 3,000 examples

Examples are the known questions and the texts of the answers, so that every entry is a class; features are those of
`search.features.tfidf`. What they would say to a question that was left out has no closed form: questions are parted
into five folds by their digests, and each fold is asked of a classifier that learnt from the others.

The regression is solved where it is small: with K = X X' = L L' the rows of L are the examples, turned. A penalty on
weights does not change when features are turned, so it is the same regression; its weights over the features of X are
X' L'^-1 W.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Floats, Ids, Sparse, Table
from matchloom.search.features.base import Arrays, Reads
from matchloom.search.features.softmax import learn_softmax, side_by_side
from matchloom.search.features.tfidf import TfIdf
from matchloom.search.reader import Queries

FOLDS = 5
SOLVED = 3_000  # examples of a regression that is solved
_WORK = 1_500_000_000  # numbers in the examples times entries: above, a machine takes minutes
_WEIGHTS = 60_000_000  # of a classifier, in single precision
_REGULAR, _STEPS = 10.0, 60  # of the regression
_ONE = Lock()  # liblinear has one generator of random numbers for all threads
_TINY = 1e-6  # so that examples that are the same can be told apart

Learn = Callable[[sp.csr_array, Ids], "LinearWeights"]


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


class LinearFeature:
    """The score of a classifier for each entry."""

    reads: Reads = "own"

    def __init__(self, name: str, seen: TfIdf, weights: LinearWeights) -> None:
        self.name, self.seen, self.weights = name, seen, weights
        self._left_out: Floats = np.empty((0, 0))

    def scores(self, queries: Queries) -> Floats:
        """One score for each question and entry."""
        return self.weights.scores(self._read(queries))

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        found: Floats = self.scores(query)[0][rows]
        return found

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question by a classifier that learnt without it (and without the rest of its fold)."""
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
        return queries.once("tfidf", lambda asked: self.seen.read(asked.texts, asked.words))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved; how texts are read is saved once for all classifiers."""
        return {"weights": self.weights.weights, "bias": self.weights.bias}

    @classmethod
    def load(cls, name: str, arrays: Arrays, seen: TfIdf) -> LinearFeature:
        """From what was saved."""
        return cls(name, seen, LinearWeights(arrays["weights"], arrays["bias"]))


def fit_linear(questions: Queries, texts: Queries, member: sp.csr_array, *, folds: bool = True) -> list[LinearFeature]:
    """The classifiers that pay for examples of this size, with what they say of questions that are left out."""
    said, words = [*questions.texts, *texts.texts], [*questions.words, *texts.words]
    seen = TfIdf.fit(said, words)
    vectors = seen.matrix(said, words)
    links = member.tocoo()
    # Texts come after the questions; a question of several entries is an example of each.
    rows = np.concatenate([links.row, len(questions) + np.arange(len(texts))])
    classes = np.concatenate([links.col, np.arange(len(texts))])
    kinds: dict[str, Learn] = {}
    if int(vectors[rows].nnz) * len(texts) <= _WORK and seen.size * len(texts) <= _WEIGHTS:
        kinds["svm"] = learn_svm
        if len(rows) <= SOLVED:
            kinds["softmax"] = learn_regression
    jobs = [(name, n) for n in range(-1, min(FOLDS, len(questions)) if folds else 0) for name in kinds]

    def work(job: tuple[str, int]) -> LinearWeights:
        name, n = job
        kept = np.ones(len(rows), dtype=bool) if n < 0 else ~np.isin(rows, np.arange(n, len(questions), FOLDS))
        return kinds[name](vectors[rows[kept]], classes[kept])

    learnt = dict(zip(jobs, side_by_side(work, jobs), strict=True))
    made = []
    for name in kinds:
        feature = LinearFeature(name, seen, learnt[name, -1])
        feature._left_out = np.zeros((len(questions) if folds else 0, len(texts)))
        for n in range(min(FOLDS, len(feature._left_out))):
            held = np.arange(n, len(questions), FOLDS)  # questions are in an order of digests
            found = learnt[name, n]
            feature._left_out[held] = vectors[held] @ found.weights + found.bias
        made.append(feature)
    return made


def learn_svm(vectors: sp.csr_array, classes: Ids) -> LinearWeights:
    """scikit-learn's LinearSVC as it is, whose only draw has a fixed seed. Classes are 0, 1, ... without a gap."""
    from sklearn.svm import LinearSVC

    with _ONE, catch_warnings():
        simplefilter("ignore", UserWarning)  # that there are many classes, which are entries
        machine = LinearSVC(random_state=0).fit(vectors, classes)
    weights, bias = machine.coef_.T, machine.intercept_
    if len(bias) == 1:  # of two classes scikit-learn tells the second only
        weights, bias = np.hstack([-weights, weights]), np.concatenate([-bias, bias])
    return LinearWeights(np.ascontiguousarray(weights, dtype=np.float32), bias.astype(np.float32))


def learn_regression(vectors: sp.csr_array, classes: Ids) -> LinearWeights:
    """Multinomial logistic regression. Classes are 0, 1, ... without a gap."""
    from scipy.linalg import cholesky, solve_triangular

    gram = (vectors @ vectors.T).toarray()
    gram[np.diag_indices_from(gram)] += _TINY
    turned = cholesky(gram, lower=True, overwrite_a=True)
    weights, bias = learn_softmax(turned, classes, _REGULAR, _STEPS)
    dual = solve_triangular(turned, weights, lower=True, trans="T")
    return LinearWeights((vectors.T.tocsr() @ dual).astype(np.float32), bias.astype(np.float32))


def machine_of(seen: TfIdf, texts: Sequence[str], words: Sequence[Sequence[str]], classes: Ids) -> LinearWeights:
    """The weights of a support vector machine; nothing where there is nothing to tell apart."""
    size = (seen.size, int(classes.max()) + 1)
    if min(size) > 0 and size[1] > 1:
        return learn_svm(seen.matrix(texts, words), classes)
    return LinearWeights(np.zeros(size, dtype=np.float32), np.zeros(size[1], dtype=np.float32))
