"""Linear classifiers over TF-IDF, one entry a class: what one would try first where answers repeat.

    svm      a linear support vector machine, one entry against all others (scikit-learn's LinearSVC), at any size
    softmax  multinomial logistic regression; of more than 3,000 examples over the columns that two of them have
    joint    the same over TF-IDF and an encoder's vectors together, in place of softmax where there is an encoder; up
             to 3,000 examples

Examples are the known questions and the texts of the answers, so that every entry is a class; features are those of
`search.features.tfidf`. What they would say to a question that was left out has no closed form: questions are parted
into five folds by their digests, and each fold is asked of a classifier that learnt from the others. Of many questions
some folds are enough (`folds_of`). Where examples times entries are too many, words and pairs of them are features, and
n-grams are not: they are eight ninths of the numbers.

More than 3,000 examples teach about pairs of words in a row, too; fewer are only misled by them. A small regression is
solved otherwise: with K = X X' = L L' the rows of L are the examples, turned. A penalty on
weights does not change when features are turned, so it is the same regression; its weights over the features of X are
X' L'^-1 W. With an encoder K = 1/4 X X' + worth V V': rows of TF-IDF have the length sqrt(2), vectors V have length 1,
and `worth` says how well the encoder knows the language. One regression that sees both weighs words against vectors by
what tells these entries apart; a sum of two regressions cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Floats, Ids, Sparse, Table, products
from matchloom.search.features.base import Arrays, Known, Reads
from matchloom.search.features.softmax import learn_softmax, side_by_side
from matchloom.search.features.tfidf import TfIdf
from matchloom.search.queries import Queries

if TYPE_CHECKING:
    from matchloom.search.features.dense import KnownVectors

FOLDS = 5
_ENOUGH = 3_000  # held-out questions that weights and probabilities are learnt from
SOLVED = 3_000  # examples of a regression that is solved
_WORK = 1_500_000_000  # numbers in the examples times entries: above, a machine takes minutes
_WEIGHTS = 60_000_000  # of a classifier, in single precision
_STEPPED = 500_000_000  # numbers times entries of a regression that is not solved: it goes through them at each step
_REGULAR, _STEPS = 10.0, 60  # of the regression over words
_STEPS_OF_MANY = 30  # of one that is not solved; sixty are no better on held-out questions, and cost twice as much
_JOINT, _JOINT_STEPS = 30.0, 100  # of that over words and vectors
_WORDS = 0.25  # of the products of words, beside those of vectors
_REGRESSION = Lock()  # a large one at a time: it remembers its last steps, and each is as large as its weights
_ONE = Lock()  # liblinear has one generator of random numbers for all threads
_EQUATIONS = 300  # times the numbers of the examples: above it solving equations, their count cubed, does not pay
_LOOSE = 1e-2  # tolerance of a machine whose scores only teach what a machine's score is worth: some .002 of them
_TRIES = 30  # of which examples lack some of the margin; four are enough, mostly
_KEPT = 12_000_000  # weights of machines that are kept to be used again
_TINY = 1e-6  # so that examples that are the same can be told apart


_LEARNT: ContextVar[dict[bytes, LinearWeights] | None] = ContextVar("learnt", default=None)


class LinearWeights(NamedTuple):
    """A weight for each feature and class, and what each class has to begin with."""

    weights: NDArray[np.float32]  # (F, A)
    bias: NDArray[np.float32]  # (A,)
    of_vectors: NDArray[np.float32] | None = None  # (A, D) where an encoder's vectors are features, too

    @classmethod
    def nothing(cls, features: int, entries: int) -> LinearWeights:
        """Weights that say nothing."""
        return cls(np.zeros((features, entries), dtype=np.float32), np.zeros(entries, dtype=np.float32))

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
    known: Known,
    *,
    folds: int = FOLDS,
    vectors: KnownVectors | None = None,
    worth: float = 1.0,
) -> list[LinearFeature]:
    """The classifiers that pay for examples of this size, with what they say of questions that are left out.

    `worth` is how well an encoder knows the language of the texts, 0 to 1. Where it does, the joint regression takes
    the place of both others. Questions are parted into so many `folds`; with 0 nothing is said of held-out questions.
    """
    questions, texts, member = known
    rows, classes = examples_of(member)
    small = len(rows) <= SOLVED
    said, words = [*questions.texts, *texts.texts], [*questions.words, *texts.words]
    seen = TfIdf.fit(said, words, pairs=not small)
    sparse = seen.matrix(said, words)
    dense = None if vectors is None else np.vstack([vectors.questions, vectors.texts])
    kinds: list[str] = []
    work_of_all = int(sparse[rows].nnz) * len(texts)
    if not _affordable(work_of_all, seen.size, len(texts)):  # of many examples words alone say nearly as much
        seen = seen.words_alone()
        sparse = sp.csr_array(sparse[:, : seen.size])
        work_of_all = int(sparse[rows].nnz) * len(texts)
    if _affordable(work_of_all, seen.size, len(texts)):
        kinds = ["svm"] if dense is None or worth < 1 or not small else []
        if small:
            kinds += ["softmax" if dense is None else "joint"]
        elif dense is None and work_of_all <= _STEPPED:
            kinds += ["softmax"]
    likeness = (sparse @ sparse.T).toarray() if small and kinds else None
    turned = None if likeness is None else Turned.of(likeness, sparse, dense, worth)
    parted = [np.arange(n, len(questions), folds) for n in range(folds_of(len(questions), folds))]
    whole = LinearWeights.nothing(0, 0)
    if "svm" in kinds:
        whole = learn_svm(sparse[rows], classes)
    exact = None
    if "svm" in kinds and parted and likeness is not None:
        exact = Machine.of(likeness, rows, classes, sparse @ whole.weights + whole.bias, int(sparse[rows].nnz))

    def work(job: tuple[str, int]) -> LinearWeights | Floats:
        """The weights of a regression of everything (-1), or what a classifier says of a fold that it did not see."""
        name, n = job
        held = parted[n] if n >= 0 else np.empty(0, dtype=np.int64)
        kept = ~np.isin(rows, held)
        if name != "svm" and turned is not None and likeness is not None:
            if n < 0:
                return turned.weights(rows, classes)
            if vectors is None or not vectors.without:
                return turned.left_out(rows[kept], classes[kept], held)
            own_turned = Turned.of(likeness, sparse, np.vstack(vectors.without[n]), worth)
            return own_turned.left_out(rows[kept], classes[kept], held)
        if name != "svm":
            own = learn_regression(sparse[rows[kept]], classes[kept])
            return own if n < 0 else sparse[held] @ own.weights + own.bias
        found = None if exact is None else exact.left_out(kept, held)
        if found is None:
            own = learn_svm(sparse[rows[kept]], classes[kept], _LOOSE)
            found = sparse[held] @ own.weights + own.bias
        return found

    jobs = [(name, n) for n in range(-1, len(parted)) for name in kinds if (name, n) != ("svm", -1)]
    learnt = dict(zip(jobs, side_by_side(work, jobs), strict=True))
    made = []
    for name in kinds:
        weights = learnt.get((name, -1), whole)
        assert isinstance(weights, LinearWeights)
        feature = LinearFeature(name, seen, weights, vectors if name == "joint" else None)
        feature._left_out = np.zeros((len(questions) if folds else 0, len(texts)))
        for n, held in enumerate(parted):  # questions are in an order of digests
            feature._left_out[held] = learnt[name, n]
        made.append(feature)
    return made


def _affordable(work: int, features: int, entries: int) -> bool:
    """Whether a machine takes seconds, or a minute or two, and its weights fit."""
    return work <= _WORK and features * entries <= _WEIGHTS


@contextmanager
def machines_once() -> Iterator[None]:
    """Meanwhile a machine of the same examples is learnt once: `fit` needs it as a baseline, and as a feature."""
    token = _LEARNT.set({})
    try:
        yield
    finally:
        _LEARNT.reset(token)


def learn_svm(vectors: sp.csr_array, classes: Ids, tolerance: float = 1e-4) -> LinearWeights:
    """scikit-learn's LinearSVC as it is, whose only draw has a fixed seed. Classes are 0, 1, ... without a gap."""
    from sklearn.svm import LinearSVC

    kept = _LEARNT.get()
    name = b"" if kept is None else _digest(vectors.data, vectors.indices, vectors.indptr, classes, tolerance)
    if kept is not None and name in kept:
        return kept[name]
    with _ONE, catch_warnings():
        simplefilter("ignore", UserWarning)  # that there are many classes, which are entries
        machine = LinearSVC(random_state=0, tol=tolerance).fit(vectors, classes)
    weights, bias = machine.coef_.T, machine.intercept_
    if len(bias) == 1:  # of two classes scikit-learn tells the second only
        weights, bias = np.hstack([-weights, weights]), np.concatenate([-bias, bias])
    made = LinearWeights(np.ascontiguousarray(weights, dtype=np.float32), bias.astype(np.float32))
    if kept is not None:
        kept[name] = made
        while sum(one.weights.size for one in kept.values()) > _KEPT:
            del kept[next(iter(kept))]
    return made


def folds_of(questions: int, folds: int = FOLDS) -> int:
    """How many of the folds are left out in turn: enough for some thousands of questions."""
    return min(folds, questions, -(-_ENOUGH * folds // max(1, questions)))


def learn_regression(vectors: sp.csr_array, classes: Ids) -> LinearWeights:
    """A logistic regression over the columns that two examples have; the others would only be learnt by heart."""
    used = np.flatnonzero(np.bincount(vectors.indices, minlength=vectors.shape[1]) > 1)
    with _REGRESSION:
        learnt, bias = learn_softmax(vectors[:, used], classes, _REGULAR, _STEPS_OF_MANY)
    weights = np.zeros((vectors.shape[1], len(bias)), dtype=np.float32)
    weights[used] = learnt
    return LinearWeights(weights, bias.astype(np.float32))


def _digest(*parts: Any) -> bytes:
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.digest()


def examples_of(member: sp.csr_array) -> tuple[Ids, Ids]:
    """The rows of examples, and their classes: texts come after questions; a question is one of each of its entries."""
    links, (questions, texts) = member.tocoo(), member.shape
    rows = np.concatenate([links.row, questions + np.arange(texts)])
    return rows, np.concatenate([links.col, np.arange(texts)])


class Machine(NamedTuple):
    """What a support vector machine would be had it not seen some of its examples: exactly, and fast where it is small.

    The loss of LinearSVC is the square of what a margin lacks. If it is known which examples lack some, weights are the
    solution of linear equations, one for each of these examples; most of them are those of the machine that saw all.
    """

    products: Floats  # of all texts, with one for the bias
    rows: Ids
    classes: Ids
    lacking: NDArray[np.bool_]  # (N, A) which examples lack some of the margin, when all were seen

    @classmethod
    def of(cls, likeness: Floats, rows: Ids, classes: Ids, said: Floats, numbers: int) -> Machine | None:
        """From what the machine that saw all says of each text; None where liblinear would be as fast.

        That goes through the `numbers` of all examples some fifty times for each class.
        """
        signs = np.where(classes[:, None] == np.arange(said.shape[1]), 1.0, -1.0)
        lacking = signs * said[rows] < 1
        if float((lacking.sum(axis=0).astype(np.float64) ** 3).mean()) > _EQUATIONS * numbers:
            return None
        return cls(likeness + 1, rows, classes, lacking)

    def left_out(self, kept: NDArray[np.bool_], held: Ids) -> Floats | None:
        """The scores of texts by the machine that learnt from the examples kept; None where it is not found."""
        from scipy.linalg.lapack import dposv

        rows, classes, lacking = self.rows[kept], self.classes[kept], self.lacking[kept]
        among, asked = self.products[np.ix_(rows, rows)], self.products[np.ix_(rows, held)]
        scores = np.empty((len(held), lacking.shape[1]))
        for entry in range(lacking.shape[1]):
            signs = np.where(classes == entry, 1.0, -1.0)
            lacks = lacking[:, entry]
            for _ in range(_TRIES):
                own = np.flatnonzero(lacks)
                beside = among[own]
                square = beside[:, own]
                square[np.diag_indices_from(square)] += 0.5
                _, weights, failed = dposv(square, signs[own], lower=1, overwrite_a=1)
                before, lacks = lacks, signs * (weights @ beside) < 1
                if failed or np.array_equal(before, lacks):
                    break
            else:
                return None
            if failed:
                return None
            scores[:, entry] = weights @ asked[own]
        return scores


class Turned(NamedTuple):
    """Examples of logistic regressions, turned so that they have as many features as there are texts."""

    rows: Floats
    sparse: sp.csr_array
    dense: NDArray[np.float32] | None
    worth: float

    @classmethod
    def of(cls, likeness: Floats, sparse: sp.csr_array, dense: NDArray[np.float32] | None, worth: float) -> Turned:
        """From the products of words; vectors have a part where there are some."""
        from scipy.linalg import cholesky

        gram = likeness.copy()
        if dense is not None:
            gram *= _WORDS
            gram += worth * (dense.astype(np.float64) @ dense.T.astype(np.float64))
        gram[np.diag_indices_from(gram)] += _TINY
        return cls(cholesky(gram, lower=True, overwrite_a=True), sparse, dense, worth)

    def left_out(self, rows: Ids, classes: Ids, held: Ids) -> Floats:
        """The scores of texts by a regression that learnt from these examples."""
        weights, bias = self._learn(rows, classes)
        found: Floats = self.rows[held] @ weights + bias
        return found

    def weights(self, rows: Ids, classes: Ids) -> LinearWeights:
        """The weights of a regression over features of texts as they are."""
        from scipy.linalg import solve_triangular

        dense = self.dense
        weights, bias = self._learn(rows, classes)
        dual = solve_triangular(self.rows, weights, lower=True, trans="T")
        of_words = (self.sparse.T.tocsr() @ dual) * (1.0 if dense is None else _WORDS)
        of_vectors = None
        if dense is not None:
            of_vectors = np.ascontiguousarray(self.worth * (dual.T @ dense), dtype=np.float32)
        return LinearWeights(of_words.astype(np.float32), bias.astype(np.float32), of_vectors)

    def _learn(self, rows: Ids, classes: Ids) -> tuple[Floats, Floats]:
        settings = (_REGULAR, _STEPS) if self.dense is None else (_JOINT, _JOINT_STEPS)
        return learn_softmax(self.rows[rows], classes, *settings)


def machine_of(vectors: sp.csr_array, classes: Ids) -> LinearWeights:
    """The weights of a support vector machine; nothing where there is nothing to tell apart."""
    size = (vectors.shape[1], int(classes.max()) + 1)
    return learn_svm(vectors, classes) if min(size) > 0 and size[1] > 1 else LinearWeights.nothing(*size)
