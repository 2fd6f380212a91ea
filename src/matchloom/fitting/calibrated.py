"""A scorer with a threshold and probabilities, both from development pairs.

    probability(q, t) = 1 / (1 + exp(-(slope * score(q, t) + offset)))                              (Platt, 1999)

Slope and offset are the likeliest for Platt's targets, (positives + 1) / (positives + 2) and 1 / (negatives + 2),
so that few pairs do not make it sure. The threshold has the highest mean of accuracy and F1: accuracy alone
says no to everything where matches are rare, F1 alone yes where they are frequent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from matchloom.explanation.mixed import term_of
from matchloom.fitting.folders import LOADERS as _INSIDE
from matchloom.fitting.folders import load_inside, save_inside
from matchloom.fitting.pair_classifier import PairClassifier
from matchloom.fitting.word_scorers import REMEDY
from matchloom.folders import make_folder
from matchloom.sealed import read_sealed, write_sealed
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair, Scorer, Scores, Trace

FILE, FORMAT = "calibrated.safetensors", 1
_INNER: dict[str, Callable[[Path], Scorer]] = {**_INSIDE, "pair_classifier": PairClassifier.load}
Floats = NDArray[np.float64]


class Calibrated:
    """A scorer, the score from which on pairs are said to match, and how likely a score's pairs do."""

    kind = "calibrated"

    def __init__(self, scorer: Scorer, threshold: float, slope: float, offset: float, tokenizer: Tokenizer) -> None:
        self.scorer, self.threshold, self.slope, self.offset = scorer, threshold, slope, offset
        self.tokenizer = tokenizer
        self.name = scorer.name

    @classmethod
    def fit(cls, scorer: Scorer, development: Sequence[Pair], tokenizer: Tokenizer) -> Calibrated:
        """From labelled pairs that the scorer has not learnt from."""
        scores = scorer.score(development).astype(np.float64)
        right = np.array([(pair.label or 0) > 0 for pair in development])
        return cls(scorer, best_threshold(scores, right), *platt(scores, right), tokenizer)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """As the scorer gives it."""
        return self.scorer.score(pairs, progress=progress)

    def probability(self, pairs: Sequence[Pair]) -> Scores:
        """How likely it is that each pair matches."""
        return self.probabilities(self.score(pairs))

    def probabilities(self, scores: Scores) -> Scores:
        """How likely it is that pairs with these scores match."""
        return np.asarray(expit(self.slope * scores.astype(np.float64) + self.offset), np.float32)

    def matches(self, pairs: Sequence[Pair]) -> NDArray[np.bool_]:
        """Whether each pair is said to match."""
        return np.asarray(self.score(pairs) >= self.threshold)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """As the scorer says it."""
        score = float(self.score([Pair(query, text)])[0])
        term = term_of(self.name, 1.0, self.scorer, query, text, score, self.tokenizer)
        return term.query, term.text, term.trace

    def save(self, folder: Path | str) -> None:
        """Write the numbers, and the scorer in a folder inside."""
        folder = Path(folder)
        make_folder(folder)
        inner = save_inside(self.scorer, folder / "scorer")
        numbers = {"threshold": self.threshold, "slope": self.slope, "offset": self.offset}
        settings = {**numbers, "tokenizer": self.tokenizer._asdict(), "scorer": inner}
        write_sealed(folder / FILE, self.kind, FORMAT, settings, {})

    @classmethod
    def load(cls, folder: Path | str) -> Calibrated:
        """Read what `save` wrote; what is missing, altered, exchanged or newer is refused in one line."""
        settings = read_sealed(Path(folder) / FILE, cls.kind, FORMAT, remedy=REMEDY).settings
        scorer = load_inside(settings["scorer"], Path(folder), _INNER)
        threshold, slope, offset = (float(settings[name]) for name in ("threshold", "slope", "offset"))
        return cls(scorer, threshold, slope, offset, Tokenizer.from_dict(settings["tokenizer"]))


def best_threshold(scores: Floats, right: NDArray[np.bool_]) -> float:
    """The threshold with the highest mean of accuracy and F1, in the middle between two scores.

    >>> best_threshold(np.array([0.1, 0.2, 0.6, 0.9]), np.array([False, False, True, True]))
    0.4
    """
    values, places = np.unique(scores, return_inverse=True)
    true = np.bincount(places, right, len(values))[::-1].cumsum()[::-1]  # positives from each value on
    said = np.bincount(places, minlength=len(values))[::-1].cumsum()[::-1]
    positives, pairs = int(right.sum()), len(right)
    accuracy = (2 * true - said + pairs - positives) / pairs
    best = int((accuracy + 2 * true / np.maximum(1, said + positives)).argmax())
    below = values[best - 1] if best else values[best]
    return float((below + values[best]) / 2)


def platt(scores: Floats, right: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and offset, the slope never below 0."""
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
