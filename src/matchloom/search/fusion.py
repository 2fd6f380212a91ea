"""One score from several features, with weights learnt from known questions that are left out one at a time.

    z_e(q, a)  = (s_e(q, a) - mean over entries of s_e(q, .)) / deviation over entries of s_e(q, .)
    score(q, a) = sum over features e of w_e z_e(q, a),      w_e >= 0
    p(a | q)   = softmax over entries of score(q, .)
    loss(w)    = sum over questions of c_q (1 - p(positives | q)^g) / g   +   pull / 2 |w - prior|^2

The scores s_e of a question are those it gets as if it were not known (`Feature.leave_one_out`), so that nothing is
learnt from an answer's having been seen. With g = 0.7 the loss lies between the logarithm (g -> 0), which lets a few
loosely labelled questions decide, and the expected error of the first answer (g = 1). The loss is a sum: few questions
leave the weights near the prior. (Where only a share of many questions is used, the pull is that share of its value,
so that the others have their weight.) c_q is 1 where the entry keeps another question; the only question of an entry
shows how entries without a question fare, and counts min(1, entries without a question / entries with one). Where
entries with several questions are the exception (they have less than three tenths of the questions) and others have
none, all questions count that much: a few answers that are asked again in the same words must not decide for all
others.

With two features this is the sum alpha s_1 + (1 - alpha) s_2 of the CNTN paper (Qiu and Huang, IJCAI 2015), up to
scale: alpha = w_1 / (w_1 + w_2) over standardised scores, learnt and not tried out on a grid.

A fusion can still be worse than one of its features. If a single one is right at the first place on so many more of
the held-out questions that chance is no explanation (sign test, p < .05 over the number of features, for each of them
has its chance), it is used alone, and `why` says so. A held-out question leaves its answer with q - 1 of q questions,
which speaks for features that need none, such as the cosine with the answer's text: each counts ((q - 1) / q)^2.

An entry that was added since has no score by classifiers. Its others count for these, too: their weights are scaled to
the same sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.lexical.columns import Floats, Ids
from matchloom.lexical.ranking import fuse
from matchloom.lexical.ranking import scale as scale

#: Where weights start and are drawn back to. Training parts of eight corpora, with one to a hundred questions an entry,
#: chose them (`python -m experiments.benchmarks.development`).
PRIOR: Mapping[str, float] = {
    "softmax": 2.0,
    "svm": 0.35,
    "ridge": 0.15,
    "bm25_doc": 0.4,
    "centroid": 0.5,
    "bm25_ans": 0.1,
    "text": 0.1,
    "translation": 0.25,
}
#: Where there are too many examples for the regression, or none.
PRIOR_OF_MANY: Mapping[str, float] = {
    "svm": 0.7,
    "ridge": 0.3,
    "bm25_doc": 0.8,
    "centroid": 1.0,
    "bm25_ans": 0.2,
    "text": 0.2,
    "translation": 0.5,
}
#: With an encoder that knows the language of the texts. The joint regression weighs words against vectors; the others
#: add little to it, but speak for entries that were added since.
PRIOR_OF_JOINT: Mapping[str, float] = {
    "joint": 2.5,
    "dense_softmax": 0.8,
    "dense_nearest": 0.2,
    "dense_text": 0.2,
    "bm25_ans": 0.2,
    "centroid": 0.1,
    "bm25_doc": 0.05,
    "text": 0.05,
    "svm": 0.1,
    "ridge": 0.1,
    "translation": 0.1,
}
#: The same where there are too many examples for that.
PRIOR_OF_ENCODER: Mapping[str, float] = {
    "dense_softmax": 2.0,
    "dense_nearest": 0.7,
    "dense_text": 0.5,
    "svm": 0.4,
    "ridge": 0.1,
    "bm25_doc": 0.25,
    "centroid": 0.3,
    "bm25_ans": 0.06,
    "text": 0.06,
    "translation": 0.1,
}
_FOREIGN = 0.25  # of an encoder's prior that is left where it does not know the language
_KNOWN, _UNKNOWN = 1.5, 2.0  # pieces a word, see `SentenceVectors.pieces_per_word`
#: Where texts alone are compared, as small FAQs of four kinds and three languages chose.
PRIOR_OF_TEXTS: Mapping[str, float] = {"bm25_ans": 0.6, "text": 1.2, "translation": 0.5, "dense_text": 1.5}
_PULL, _BOUND = 10.0, 0.7
_PULL_OF_JOINT = 50.0  # joint regressions are mostly right about words and vectors
_CHANCE = 0.05


class Cases(NamedTuple):
    """Held-out questions, each with C entries (fewer where `present` is False) and E standardised features."""

    features: Floats  # (N, C, E)
    present: NDArray[np.bool_]  # (N, C)
    positive: NDArray[np.bool_]  # (N, C)
    counted: Floats  # (N,)
    share: float = 1.0  # of all questions that count, where only some are here
    signals: Floats = np.empty((0, 0))  # (N, 5) what each question is worth, see `matchloom.search.calibration`


class LeaveOneOut(NamedTuple):
    """How often known questions find their answer when they are left out; questions count as in the loss.

    The weights were learnt on the same questions: a handful of numbers, so the figures flatter a little.
    """

    questions: int
    precision_at_1: float
    reciprocal_rank: float
    recall_at_3: float


class Fusion(NamedTuple):
    """The features, their weights, and where these come from."""

    names: tuple[str, ...]
    weights: Floats
    why: str

    def score(self, raw: Floats, mean: Floats, spread: Floats) -> Floats:
        """The score of each entry by raw features (N, E, C), the same to the bit whatever other entries there are."""
        return fuse(raw, mean, spread, self.weights)


def worth_of(pieces_per_word: float) -> float:
    """How well an encoder knows the language of texts whose words it cuts into so many pieces: 0 not at all, 1 well."""
    return min(1.0, max(0.0, (_UNKNOWN - pieces_per_word) / (_UNKNOWN - _KNOWN)))


def prior_of(names: Sequence[str], *, use_questions: bool = True, worth: float = 1.0) -> Mapping[str, float]:
    """Where the weights of these features start.

    Without `use_questions` texts alone are compared. Where an encoder is worth little (`worth_of`), words count as they
    do without it.
    """
    if not use_questions:
        return PRIOR_OF_TEXTS
    words = PRIOR if "softmax" in names or "joint" in names else PRIOR_OF_MANY
    if not any(name.startswith("dense") for name in names):
        return words
    words = {"joint" if name == "softmax" else name: weight for name, weight in words.items()}
    encoder = {"dense_untuned": 0.0, **(PRIOR_OF_JOINT if "joint" in names else PRIOR_OF_ENCODER)}
    return {name: worth * own + (1 - worth) * words.get(name, _FOREIGN * own) for name, own in encoder.items()}


def pull_of(names: Sequence[str]) -> float:
    """How strongly weights of these features are drawn to their prior."""
    return _PULL_OF_JOINT if "joint" in names else _PULL


def learn_fusion(
    names: Sequence[str],
    cases: Cases,
    priors: Mapping[str, float],
    pull: float | None = None,
    *,
    questions: float = inf,
) -> Fusion:
    """The weights that held-out questions ask for, or a single feature where that is better beyond chance.

    `questions` is how many an answer has on the mean, of which a held-out one takes one away.
    """
    prior = np.array([priors[name] for name in names])
    if not cases.counted.sum():
        return Fusion(tuple(names), prior, "the prior: no known question has an entry with another question")
    weights = learn_weights(cases, prior, pull_of(names) if pull is None else pull)
    fusion = Fusion(tuple(names), weights, f"learnt from {len(cases.counted)} held-out questions")
    if np.count_nonzero(weights) > 1:
        return _guarded(fusion, cases, float(prior.sum()), held_out_share(questions))
    return fusion


def held_out_share(questions: float) -> float:
    """How much a held-out question tells of an answer's use, which it leaves with one less of so many."""
    return (1 - 1 / max(questions, 1.0)) ** 2


def learn_weights(cases: Cases, prior: Floats, pull: float = _PULL) -> Floats:
    """The least loss, by L-BFGS with bounds."""
    from scipy.optimize import minimize

    pull *= cases.share

    def loss(w: Floats) -> tuple[float, Floats]:
        p = _softmax(cases.features @ w, cases.present)
        p_right = np.where(cases.positive, p, 0.0)
        right = p_right.sum(axis=1) + 1e-12
        pushed = np.einsum("nc,nce->ne", p_right - right[:, None] * p, cases.features)  # d right / d w
        value = cases.counted @ ((1 - right**_BOUND) / _BOUND) + 0.5 * pull * ((w - prior) ** 2).sum()
        return float(value), pull * (w - prior) - (cases.counted * right ** (_BOUND - 1)) @ pushed

    found = minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(prior))
    return np.asarray(found.x, dtype=np.float64)


def _guarded(fusion: Fusion, cases: Cases, prior: float, share: float) -> Fusion:
    from matchloom.evaluation.significance import sign_test

    fused, chance = ranks(cases, fusion.weights) == 1, _CHANCE / len(fusion.names)
    best: tuple[int, int, int, float] | None = None
    for e in range(len(fusion.names)):
        alone = ranks(cases, np.eye(len(fusion.names))[e]) == 1
        won, lost = (
            round(share * float(cases.counted[one & ~other].sum())) for one, other in ((alone, fused), (fused, alone))
        )
        if won > lost:
            p = sign_test(won, lost)
            if p < chance and (best is None or won - lost > best[1] - best[2]):
                best = (e, won, lost, p)
    if best is None:
        return fusion
    e, won, lost, p = best
    weights = np.zeros(len(fusion.names))
    weights[e] = learn_weights(cases._replace(features=cases.features[:, :, [e]]), np.array([prior]))[0] or prior
    why = f"{fusion.names[e]} alone: right on {won} held-out questions where the fusion is wrong, wrong on {lost}"
    return Fusion(fusion.names, weights, f"{why} (p = {p:.2g})")


def ranks(cases: Cases, weights: Floats) -> Ids:
    """At which place the first right answer of each question stands; 0 where it is not among the candidates."""
    scores = np.where(cases.present, cases.features @ weights, -np.inf)
    right = np.where(cases.positive, scores, -np.inf)
    first = right.argmax(axis=1)  # of equal ones that with the least id
    best = right[np.arange(len(right)), first][:, None]
    before = (scores > best) | ((scores == best) & (np.arange(scores.shape[1]) < first[:, None]))
    return np.where(cases.positive.any(axis=1), 1 + before.sum(axis=1), 0)


def leave_one_out_figures(cases: Cases, weights: Floats) -> LeaveOneOut | None:
    """The figures of a fusion; None where no question counts."""
    if not cases.counted.sum():
        return None
    at = ranks(cases, weights)
    found = at > 0
    figures = (at == 1, np.where(found, 1 / np.maximum(at, 1), 0.0), found & (at <= 3))
    return LeaveOneOut(len(at), *(float(np.average(figure, weights=cases.counted)) for figure in figures))


def compare_weights(cases: Cases, old: Floats, new: Floats) -> tuple[float, float, bool]:
    """How often the first answer is right by old and by new weights, and whether the new are worse beyond chance."""
    before, after = (ranks(cases, weights) == 1 for weights in (old, new))
    first, second = (float(np.average(one, weights=cases.counted)) for one in (before, after))
    return first, second, worse_beyond_chance(before, after)


def worse_beyond_chance(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> bool:
    """Whether fewer questions are right after than before, and chance is no explanation (sign test)."""
    from matchloom.evaluation.significance import sign_test

    lost, won = int((before & ~after).sum()), int((after & ~before).sum())
    return lost > won and sign_test(won, lost) < _CHANCE


def _softmax(scores: Floats, there: NDArray[np.bool_]) -> Floats:
    scores = np.where(there, scores, -np.inf)
    p: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p
