"""The logistic regression of a pair classifier: how far its weights are held back, folds choose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.evaluation.labelled import measure_labelled
from matchloom.types import MatchloomError

HELD_BACK = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # what the sum of losses counts against the weights; folds choose
FEW = 2_000  # pairs up to which all folds choose, and weights are rather held back than not
Floats = NDArray[np.float64]


def learn_weights(x: sp.csr_matrix, right: NDArray[np.bool_], held_back: float) -> tuple[Floats, float]:
    """The weights (F,) and bias of least loss; a small `held_back` keeps weights small."""
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression(C=held_back, solver="liblinear").fit(x, right)
    return np.asarray(found.coef_[0], np.float64), float(found.intercept_[0])


def in_folds(
    x: sp.csr_matrix, right: NDArray[np.bool_], folds: NDArray[np.int64], strengths: Sequence[float]
) -> tuple[float, Floats]:
    """Of the strengths the one with the highest average precision of held-out pairs, and these pairs' scores.

    Of many pairs two folds choose: the others would cost more than they tell.
    """

    def held_out(held_back: float, some: Iterable[int]) -> Floats:
        scores = np.full(len(right), np.nan)
        for fold in some:
            if len(set(right[folds != fold])) < 2:
                raise MatchloomError("too few groups of pairs have both labels to learn from; label more pairs")
            weights, bias = learn_weights(x[folds != fold], right[folds != fold], held_back)
            scores[folds == fold] = x[folds == fold] @ weights + bias
        return scores

    every = range(int(folds.max()) + 1)
    first = every if len(right) <= FEW else every[:2]
    found = {held_back: held_out(held_back, first) for held_back in strengths}
    best = _least(found, right)
    rest = held_out(best, every[len(first) :])
    return best, np.where(np.isnan(rest), found[best], rest)


def _least(found: Mapping[float, Floats], right: NDArray[np.bool_]) -> float:
    """The strength with the highest average precision; of few pairs the least that is within a standard error of it."""
    each = {}
    for strength, scores in found.items():
        asked = ~np.isnan(scores)
        each[strength] = measure_labelled(scores[asked], right[asked], None).each["AP"]
    best = max(each, key=lambda strength: each[strength].mean())
    if len(right) > FEW:
        return best
    apart = {strength: each[best] - own for strength, own in each.items()}
    return next(s for s, gap in apart.items() if gap.mean() <= gap.std() / np.sqrt(len(gap)))
