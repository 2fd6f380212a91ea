"""Linear classifiers over TF-IDF, one entry a class: what one would try first where answers repeat.

    svm      a linear support vector machine, one entry against all others (scikit-learn's LinearSVC), at any size
    softmax  multinomial logistic regression, up to 3,000 examples
    joint    the same over TF-IDF and an encoder's vectors together, in place of softmax where there is an encoder

Examples are the known questions and the texts of the answers, so that every entry is a class; features are those of
`search.features.tfidf`. What they would say to a question that was left out has no closed form: questions are parted
into five folds by their digests, and each fold is asked of a classifier that learnt from the others.

The regression is solved where it is small: with K = X X' = L L' the rows of L are the examples, turned. A penalty on
weights does not change when features are turned, so it is the same regression; its weights over the features of X are
X' L'^-1 W. With an encoder K = 1/4 X X' + worth V V': rows of TF-IDF have the length sqrt(2), vectors V have length 1,
and `worth` says how well the encoder knows the language. One regression that sees both weighs words against vectors by
what tells these entries apart; a sum of two regressions cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Floats, Ids, Sparse, Table, products
from matchloom.search.features.base import Arrays, Reads
from matchloom.search.features.softmax import learn_softmax, side_by_side
from matchloom.search.features.tfidf import TfIdf
from matchloom.search.reader import Queries

if TYPE_CHECKING:
    from matchloom.search.features.dense import KnownVectors

FOLDS = 5
SOLVED = 3_000  # examples of a regression that is solved
_WORK = 1_500_000_000  # numbers in the examples times entries: above, a machine takes minutes
_WEIGHTS = 60_000_000  # of a classifier, in single precision
_REGULAR, _STEPS = 10.0, 60  # of the regression over words
_JOINT, _JOINT_STEPS = 30.0, 100  # of that over words and vectors
_WORDS = 0.25  # of the products of words, beside those of vectors
_ONE = Lock()  # liblinear has one generator of random numbers for all threads
_TINY = 1e-6  # so that examples that are the same can be told apart

Learn = Callable[[Ids, Ids], "LinearWeights"]  # from rows of examples and their classes


class LinearWeights(NamedTuple):
    """A weight for each feature and class, and what each class has to begin with."""

    weights: NDArray[np.float32]  # (F, A)
    bias: NDArray[np.float32]  # (A,)
    of_vectors: NDArray[np.float32] | None = None  # (A, D) where an encoder's vectors are features, too

    def scores(self, questions: Sparse, vectors: Floats | None = None) -> Floats:
        """One score for each class; nothing for a text of which nothing is known, whatever the bias. (N, A)"""
        found = Table(self.weights).dots(questions)
        if self.of_vectors is not None and vectors is not None:
            found += np.stack([products(self.of_vectors, x) for x in vectors]) + self.bias.astype(np.float64)
        else:
            found += np.where(np.diff(questions.bounds)[:, None] > 0, self.bias.astype(np.float64), 0.0)
        return found

    def parts(self, features: Ids, values: Floats, entry: int) -> Floats:
        """What each feature adds to one of the scores, and at last the bias."""
        added = values * self.weights[features, entry].astype(np.float64)
        return np.append(added, float(self.bias[entry]) if len(features) else 0.0)


class LinearFeature:
    """The score of a classifier for each entry; one that has weights for vectors needs them."""

    reads: Reads = "own"

    def __init__(self, name: str, seen: TfIdf, weights: LinearWeights, vectors: KnownVectors | None = None) -> None:
        self.name, self.seen, self.weights, self.vectors = name, seen, weights, vectors
        self._left_out: Floats = np.empty((0, 0))

    def scores(self, queries: Queries) -> Floats:
        """One score for each question and entry."""
        dense = None if self.vectors is None else self.vectors.sentences.asked(queries)
        return self.weights.scores(self._read(queries), dense)

    def some(self, query: Queries, rows: Ids) -> Floats:
        """The scores of one question for these entries."""
        found: Floats = self.scores(query)[0][rows]
        return found

    def leave_one_out(self, row: int) -> Floats:
        """The scores of a known question by a classifier that learnt without it (and without the rest of its fold)."""
        left: Floats = self._left_out[row]
        return left

    def contributions(self, query: Queries, entry: int) -> Floats:
        """What each feature of the question adds; the last is its vector and what the entry has to begin with."""
        added = self.weights.parts(*self._read(query)[0], entry)
        if self.vectors is not None and self.weights.of_vectors is not None:
            x = self.vectors.sentences.asked(query)[0]
            own = products(self.weights.of_vectors, x, np.array([entry]))[0]
            added[-1] = float(own) + float(self.weights.bias[entry])
        return added

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
        own = self.weights
        found = {"weights": own.weights, "bias": own.bias}
        return found if own.of_vectors is None else {**found, "of_vectors": own.of_vectors}

    @classmethod
    def load(cls, name: str, arrays: Arrays, seen: TfIdf, vectors: KnownVectors | None = None) -> LinearFeature:
        """From what was saved."""
        weights = LinearWeights(arrays["weights"], arrays["bias"], arrays.get("of_vectors"))
        return cls(name, seen, weights, None if weights.of_vectors is None else vectors)


def fit_linear(
    questions: Queries,
    texts: Queries,
    member: sp.csr_array,
    *,
    folds: bool = True,
    vectors: KnownVectors | None = None,
    worth: float = 1.0,
) -> list[LinearFeature]:
    """The classifiers that pay for examples of this size, with what they say of questions that are left out.

    `worth` is how well an encoder knows the language of the texts, 0 to 1. Where it does, the joint regression takes
    the place of both others.
    """
    said, words = [*questions.texts, *texts.texts], [*questions.words, *texts.words]
    seen = TfIdf.fit(said, words)
    sparse = seen.matrix(said, words)
    dense = None if vectors is None else np.vstack([vectors.questions, vectors.texts])
    links = member.tocoo()
    # Texts come after the questions; a question of several entries is an example of each.
    rows = np.concatenate([links.row, len(questions) + np.arange(len(texts))])
    classes = np.concatenate([links.col, np.arange(len(texts))])
    kinds: dict[str, Learn] = {}
    if int(sparse[rows].nnz) * len(texts) <= _WORK and seen.size * len(texts) <= _WEIGHTS:
        kinds["svm"] = lambda some, own: learn_svm(sparse[some], own)
        if len(rows) <= SOLVED and dense is None:
            kinds["softmax"] = lambda some, own: learn_regression(sparse[some], own)
        elif len(rows) <= SOLVED and dense is not None:
            if worth == 1:
                del kinds["svm"]
            kinds["joint"] = lambda some, own: learn_regression(sparse[some], own, dense[some], worth)
    jobs = [(name, n) for n in range(-1, min(FOLDS, len(questions)) if folds else 0) for name in kinds]

    def work(job: tuple[str, int]) -> LinearWeights:
        name, n = job
        kept = np.ones(len(rows), dtype=bool) if n < 0 else ~np.isin(rows, np.arange(n, len(questions), FOLDS))
        return kinds[name](rows[kept], classes[kept])

    learnt = dict(zip(jobs, side_by_side(work, jobs), strict=True))
    made = []
    for name in kinds:
        feature = LinearFeature(name, seen, learnt[name, -1], vectors if name == "joint" else None)
        feature._left_out = np.zeros((len(questions) if folds else 0, len(texts)))
        for n in range(min(FOLDS, len(feature._left_out))):
            held = np.arange(n, len(questions), FOLDS)  # questions are in an order of digests
            found = learnt[name, n]
            feature._left_out[held] = sparse[held] @ found.weights + found.bias
            if dense is not None and found.of_vectors is not None:
                feature._left_out[held] += dense[held] @ found.of_vectors.T
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


def learn_regression(
    sparse: sp.csr_array, classes: Ids, dense: NDArray[np.float32] | None = None, worth: float = 1.0
) -> LinearWeights:
    """Multinomial logistic regression, over vectors, too, where there are some. Classes are 0, 1, ... without a gap."""
    from scipy.linalg import cholesky, solve_triangular

    gram = (sparse @ sparse.T).toarray()
    if dense is not None:
        gram *= _WORDS
        gram += worth * (dense.astype(np.float64) @ dense.T.astype(np.float64))
    gram[np.diag_indices_from(gram)] += _TINY
    turned = cholesky(gram, lower=True, overwrite_a=True)
    weights, bias = learn_softmax(turned, classes, *((_REGULAR, _STEPS) if dense is None else (_JOINT, _JOINT_STEPS)))
    dual = solve_triangular(turned, weights, lower=True, trans="T")
    of_words = (sparse.T.tocsr() @ dual) * (1.0 if dense is None else _WORDS)
    of_vectors = None if dense is None else np.ascontiguousarray(worth * (dual.T @ dense), dtype=np.float32)
    return LinearWeights(of_words.astype(np.float32), bias.astype(np.float32), of_vectors)


def machine_of(seen: TfIdf, texts: Sequence[str], words: Sequence[Sequence[str]], classes: Ids) -> LinearWeights:
    """The weights of a support vector machine; nothing where there is nothing to tell apart."""
    size = (seen.size, int(classes.max()) + 1)
    if min(size) > 0 and size[1] > 1:
        return learn_svm(seen.matrix(texts, words), classes)
    return LinearWeights(np.zeros(size, dtype=np.float32), np.zeros(size[1], dtype=np.float32))
