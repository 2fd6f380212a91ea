"""From scores to a yes or no and to probabilities, by labelled development pairs.

    probability(q, t) = 1 / (1 + exp(-(slope * score(q, t) + offset)))                              (Platt, 1999)

Slope and offset are the likeliest for Platt's targets, (positives + 1) / (positives + 2) and 1 / (negatives + 2),
so that few pairs do not make it sure. The threshold has the highest mean of accuracy and F1: accuracy alone
says no to everything where matches are rare, F1 alone yes where they are frequent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from matchloom.types import Calibrates, Pair, Scorer, Scores

Floats = NDArray[np.float64]


def labels(pairs: Iterable[Pair]) -> NDArray[np.bool_]:
    """Whether each pair is right."""
    return np.array([pair.is_labelled_positive for pair in pairs], dtype=bool)


class Calibration(NamedTuple):
    """The score from which on pairs are said to match, and how likely a score's pairs do."""

    threshold: float
    slope: float
    offset: float

    @classmethod
    def fit(cls, scores: ArrayLike, right: NDArray[np.bool_]) -> Calibration:
        """From held-out pairs of both labels."""
        found = np.asarray(scores, np.float64)
        return cls(best_threshold(found, right), *platt(found, right))

    def probabilities(self, scores: Scores) -> Scores:
        """How likely it is that pairs with these scores match."""
        return np.asarray(expit(self.slope * scores.astype(np.float64) + self.offset), np.float32)


LOG_ODDS = Calibration(0.0, 1.0, 0.0)  # of scores that are the logarithm of how much likelier a match is than none


def best_threshold(scores: Floats, right: NDArray[np.bool_], measures: Sequence[str] = ("accuracy", "F1")) -> float:
    """The threshold with the highest mean of accuracy and F1, or of one of them, in the middle between two scores.

    >>> best_threshold(np.array([0.1, 0.2, 0.6, 0.9]), np.array([False, False, True, True]))
    0.4
    """
    values, places = np.unique(scores, return_inverse=True)
    true = np.bincount(places, right, len(values))[::-1].cumsum()[::-1]  # positives from each value on
    said = np.bincount(places, minlength=len(values))[::-1].cumsum()[::-1]
    positives, pairs = int(right.sum()), len(right)
    found = {
        "accuracy": (2 * true - said + pairs - positives) / pairs,
        "F1": 2 * true / np.maximum(1, said + positives),
    }
    best = int(np.sum([found[name] for name in measures], axis=0).argmax())
    below = values[best - 1] if best else values[best]
    return float((below + values[best]) / 2)


def platt(scores: Floats, right: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and offset, the slope never below 0."""
    from scipy.optimize import minimize  # half a second, which only fitting should cost

    positives, negatives = int(right.sum()), int((~right).sum())
    targets = np.where(right, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    mean, deviation = scores.mean(), scores.std() or 1.0
    scaled = (scores - mean) / deviation

    def loss(parameters: Floats) -> tuple[float, Floats]:
        at = parameters[0] * scaled + parameters[1]
        apart = expit(at) - targets
        return float((np.logaddexp(0, at) - targets * at).sum()), np.array([apart @ scaled, apart.sum()])

    slope, offset = minimize(loss, [1.0, 0.0], jac=True, method="L-BFGS-B", bounds=[(0, None), (None, None)]).x
    return float(slope / deviation), float(offset - slope * mean / deviation)


def relevance(scorer: Scorer, scores: Scores) -> Floats:
    """Scores between 0 and 1, in the same order, as programs want them that know nothing of the scorer.

    Probabilities where the scorer has them. Else they only order: a score that is between 0 and 1 by nature (`bounds`
    of the scorer) stays as it is; one that begins at 0, such as BM25's, becomes s / (1 + s), any other 1 / (1 + e^-s).

    Args:
        scorer: What made the scores.
        scores: What its `score` gave.
    """
    known = scorer.probabilities(scores) if isinstance(scorer, Calibrates) else None
    found = np.asarray(scores if known is None else known, np.float64)
    least, most = (0.0, 1.0) if known is not None else getattr(scorer, "bounds", (-np.inf, np.inf))
    if least != 0:
        found = expit(found)
    elif most != 1:
        found = found / (1 + found)
    return np.clip(found, 0.0, 1.0)
