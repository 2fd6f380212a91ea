"""How sure a ranking may be, learnt from left-out questions.

    p(a | q)   = known(q) * softmax over entries of score(q, .) / temperature
    known(q)   = min(1, support(q) / least)
    support(q) = coverage(q) * the highest cosine of the question with the centre of an entry

The temperature makes the likelihood of the left-out questions' positives highest. Standardised features know which
entry is best and not whether any is good: of a question of which only stray n-grams are known, some entry is still
the best by far. `coverage` is the part of the question's stems and n-grams that the collection has; `least` is the
support that 19 of 20 left-out questions exceed, so that ordinary questions are untouched and a weaker one loses
probability, which belongs to none of the entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchloom.lexical.columns import Floats
from matchloom.search.fusion import Cases

_WEAK = 0.05  # of the left-out questions are weaker than `least`
_LEAST = 0.1  # without left-out questions; about what six collections had
_ENOUGH = 20  # left-out questions to learn from
_FLOOR = 1e-3  # of a right answer's probability: one loosely labelled question must not decide
_TEMPERATURES = np.exp(np.linspace(np.log(0.25), np.log(4), 81))


class Calibration(NamedTuple):
    """What turns scores into probabilities."""

    temperature: float = 1.0
    least: float = _LEAST

    def known(self, support: float) -> float:
        """How likely it is that any answer is right, as far as the question's words tell. Between 0 and 1."""
        return min(1.0, support / self.least) if self.least > 0 else 1.0

    def probabilities(self, scores: Floats, support: float) -> Floats:
        """Of each answer; they add up to what `known` says."""
        likely: Floats = np.exp((scores - scores.max()) / self.temperature)
        likely *= self.known(support) / likely.sum()
        return likely


def learn_calibration(cases: Cases, weights: Floats) -> Calibration:
    """From what a fusion with these weights says of left-out questions."""
    counted = cases.counted > 0
    if counted.sum() < _ENOUGH:
        return Calibration()
    scores = np.where(cases.present, cases.features @ weights, -np.inf)[counted]
    scores -= scores.max(axis=1, keepdims=True)
    right, share = cases.positive[counted], cases.counted[counted]
    losses = []
    for temperature in _TEMPERATURES.tolist():
        likely = np.exp(scores / temperature)
        found = np.where(right, likely, 0.0).sum(axis=1) / likely.sum(axis=1)
        losses.append(-float(share @ np.log(np.maximum(found, _FLOOR))))
    least = float(np.quantile(cases.support[counted], _WEAK))
    return Calibration(float(_TEMPERATURES[int(np.argmin(losses))]), least)
