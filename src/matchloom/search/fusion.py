"""One score from several pieces of evidence, with weights learnt from questions that were left out.

    z_e(q, a)  = (s_e(q, a) - mean over answers of s_e(q, .)) / deviation over answers of s_e(q, .)
    score(q, a) = sum over pieces e of w_e z_e(q, a),      w_e >= 0
    p(a | q)   = softmax over answers of score(q, .)
    loss(w)    = sum over questions of c_q (1 - p(right answers | q)^g) / g   +   pull / 2 |w - prior|^2

The scores s_e of a question are those it gets when it is not known (`Evidence.left_out`), so that nothing is learnt
from an answer's having been seen. With g = 0.7 the loss lies between the logarithm (g -> 0), which lets a few loosely
labelled questions decide, and the expected error of the first answer (g = 1). The loss is a sum: few questions leave
the weights near the prior. (Where only a share of many questions is looked at, the pull is that share of 10, so that
the others have their weight.) c_q is 1 where the answer keeps another question; the only question of an answer shows
how answers without a question fare, and counts min(1, answers without a question / answers with one). Where answers
with several questions are the exception (they have less than three tenths of the questions) and others have none, all
questions count that much: a few answers that are asked again in the same words must not decide for all others.

With two pieces of evidence this is the mixture alpha s_1 + (1 - alpha) s_2 of the CNTN paper (Qiu and Huang, IJCAI
2015), up to scale: alpha = w_1 / (w_1 + w_2) over standardised scores, learnt and not tried out on a grid.

A mixture can still be worse than one of its pieces. If a single piece is right at the first place on so many more of
the left-out questions that chance is no explanation (sign test, p < .05), it is used alone, and `why` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.search.entries import Floats, Ids

#: Where weights start and are drawn back to: about the mean of those learnt on six collections; `text` and `bm25_ans`
#: share what the latter had.
PRIOR: Mapping[str, float] = {
    "svm": 0.7,
    "ridge": 0.7,
    "bm25_doc": 0.8,
    "centroid": 1.0,
    "bm25_ans": 0.2,
    "text": 0.2,
    "translation": 0.5,
    "meaning_nearest": 1.0,
    "meaning_text": 0.5,
    "meaning_ridge": 1.0,
}
_RIDGE_BESIDE_SVM = 0.3  # of two linear classifiers the better one counts more
#: The same where texts alone are looked at, as small FAQs of four kinds and three languages chose.
PRIOR_OF_TEXTS: Mapping[str, float] = {"bm25_ans": 0.6, "text": 1.2, "translation": 0.5, "meaning_text": 1.5}
_PULL, _BOUND = 10.0, 0.7
_CHANCE = 0.05
_LEAST = 1e-9


class Cases(NamedTuple):
    """Left-out questions, each with C answers (fewer where `there` is False) and E standardised pieces of evidence."""

    evidence: Floats  # (N, C, E)
    there: NDArray[np.bool_]  # (N, C)
    right: NDArray[np.bool_]  # (N, C)
    counted: Floats  # (N,)
    share: float = 1.0  # of all questions that count, where only some are here
    strength: Floats = np.empty(0)  # (N,) how much is known of each question, see `matchloom.search.calibration`


class LeftOut(NamedTuple):
    """How often known questions find their answer when they are left out; questions count as in the loss.

    The weights were learnt on the same questions: a handful of numbers, so the figures flatter a little.
    """

    questions: int
    precision_at_1: float
    reciprocal_rank: float
    recall_at_3: float


class Mixture(NamedTuple):
    """The pieces of evidence, their weights, and where these come from."""

    names: tuple[str, ...]
    weights: Floats
    why: str

    def score(self, raw: Floats, mean: Floats, spread: Floats) -> Floats:
        """The mixed score of each row of raw evidence (C, E), the same to the bit whatever other rows there are."""
        total = np.zeros(len(raw))
        for e, weight in enumerate(self.weights.tolist()):
            total += weight * ((raw[:, e] - mean[e]) / spread[e])
        return total


def scale(raw: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation of each piece of evidence over the answers. (E,), (E,)"""
    return raw.mean(axis=0), np.maximum(raw.std(axis=0), _LEAST)


def prior_of(names: Sequence[str], *, asked: bool = True) -> Mapping[str, float]:
    """Where the weights of these pieces of evidence start; without `asked` they are of texts alone."""
    if not asked:
        return PRIOR_OF_TEXTS
    return {**PRIOR, "ridge": _RIDGE_BESIDE_SVM} if "svm" in names else PRIOR


def learn_mixture(names: Sequence[str], cases: Cases, priors: Mapping[str, float] = PRIOR) -> Mixture:
    """The weights that left-out questions ask for, or a single piece where that is better beyond chance."""
    prior = np.array([priors[name] for name in names])
    if not cases.counted.sum():
        return Mixture(tuple(names), prior, "the prior: no known question has an answer with another question")
    weights = learn_weights(cases, prior)
    questions = len(cases.counted)
    mixture = Mixture(tuple(names), weights, f"learnt from {questions} left-out questions")
    if np.count_nonzero(weights) > 1:
        return _guarded(mixture, cases, float(prior.sum()))
    return mixture


def learn_weights(cases: Cases, prior: Floats) -> Floats:
    """The least loss, by L-BFGS with bounds."""
    from scipy.optimize import minimize

    pull = _PULL * cases.share

    def loss(w: Floats) -> tuple[float, Floats]:
        p = _softmax(cases.evidence @ w, cases.there)
        p_right = np.where(cases.right, p, 0.0)
        right = p_right.sum(axis=1) + 1e-12
        pushed = np.einsum("nc,nce->ne", p_right - right[:, None] * p, cases.evidence)  # d right / d w
        value = cases.counted @ ((1 - right**_BOUND) / _BOUND) + 0.5 * pull * ((w - prior) ** 2).sum()
        return float(value), pull * (w - prior) - (cases.counted * right ** (_BOUND - 1)) @ pushed

    found = minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(prior))
    return np.asarray(found.x, dtype=np.float64)


def _guarded(mixture: Mixture, cases: Cases, prior: float) -> Mixture:
    from scipy.stats import binomtest

    mixed = ranks(cases, mixture.weights) == 1
    best: tuple[int, int, int, float] | None = None
    for e in range(len(mixture.names)):
        alone = ranks(cases, np.eye(len(mixture.names))[e]) == 1
        won, lost = (round(float(cases.counted[one & ~other].sum())) for one, other in ((alone, mixed), (mixed, alone)))
        if won > lost:
            p = float(binomtest(won, won + lost).pvalue)
            if p < _CHANCE and (best is None or won - lost > best[1] - best[2]):
                best = (e, won, lost, p)
    if best is None:
        return mixture
    e, won, lost, p = best
    weights = np.zeros(len(mixture.names))
    weights[e] = learn_weights(cases._replace(evidence=cases.evidence[:, :, [e]]), np.array([prior]))[0] or prior
    why = f"{mixture.names[e]} alone: right on {won} left-out questions where the mixture is wrong, wrong on {lost}"
    return Mixture(mixture.names, weights, f"{why} (p = {p:.2g})")


def ranks(cases: Cases, weights: Floats) -> Ids:
    """At which place the first right answer of each question stands; 0 where it is not among the candidates."""
    scores = np.where(cases.there, cases.evidence @ weights, -np.inf)
    right = np.where(cases.right, scores, -np.inf)
    first = right.argmax(axis=1)  # of equal ones that with the least id
    best = right[np.arange(len(right)), first][:, None]
    before = (scores > best) | ((scores == best) & (np.arange(scores.shape[1]) < first[:, None]))
    return np.where(cases.right.any(axis=1), 1 + before.sum(axis=1), 0)


def left_out_figures(cases: Cases, weights: Floats) -> LeftOut | None:
    """The figures of a mixture; None where no question counts."""
    if not cases.counted.sum():
        return None
    at = ranks(cases, weights)
    found = at > 0
    figures = (at == 1, np.where(found, 1 / np.maximum(at, 1), 0.0), found & (at <= 3))
    return LeftOut(len(at), *(float(np.average(figure, weights=cases.counted)) for figure in figures))


def _softmax(scores: Floats, there: NDArray[np.bool_]) -> Floats:
    scores = np.where(there, scores, -np.inf)
    p: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p
