"""A scorer with a threshold and probabilities, both from development pairs (calibration.py)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchloom.artifact import as_saved, read, write
from matchloom.calibration import Calibration, labels
from matchloom.explanation.mixed import term_of
from matchloom.fitting.word_scorers import REMEDY
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair, Scorer, Scores, Trace

FORMAT = 2  # 1 was a safetensors file


class Calibrated:
    """A scorer, the score from which on pairs are said to match, and how likely a score's pairs do."""

    def __init__(self, scorer: Scorer, calibration: Calibration, tokenizer: Tokenizer) -> None:
        self.scorer = scorer
        self.calibration = calibration
        self.tokenizer = tokenizer
        self.threshold: float = calibration.threshold
        self.name: str = scorer.name

    @classmethod
    def fit(cls, scorer: Scorer, development: Sequence[Pair], tokenizer: Tokenizer) -> Calibrated:
        """From held-out labelled pairs."""
        return cls(scorer, Calibration.fit(scorer.score(development), labels(development)), tokenizer)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """As the scorer gives it."""
        return self.scorer.score(pairs, progress=progress)

    def probability(self, pairs: Sequence[Pair]) -> Scores:
        """How likely it is that each pair matches."""
        return self.probabilities(self.score(pairs))

    def probabilities(self, scores: Scores) -> Scores:
        """How likely it is that pairs with these scores match."""
        return self.calibration.probabilities(scores)

    def matches(self, pairs: Sequence[Pair]) -> NDArray[np.bool_]:
        """Whether each pair is said to match."""
        return np.asarray(self.score(pairs) >= self.threshold)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """As the scorer says it."""
        score = float(self.score([Pair(query, text)])[0])
        term = term_of(self.name, 1.0, self.scorer, query, text, score, self.tokenizer)
        return term.query, term.text, term.trace

    def save(self, folder: Path | str) -> None:
        """Write the numbers, and the scorer inside."""
        settings = {**self.calibration._asdict(), "tokenizer": self.tokenizer._asdict()}
        inside: Any = {"scorer": self.scorer}
        write(folder, "calibrated", FORMAT, settings, inside=inside)

    @classmethod
    def load(cls, folder: Path | str) -> Calibrated:
        """Read what `save` wrote; what is missing, altered, exchanged or newer is refused in one line."""
        saved = read(folder, "calibrated", FORMAT, remedy=REMEDY)
        with as_saved(folder, REMEDY):
            numbers = [float(saved.settings[name]) for name in Calibration._fields]
            if not np.isfinite(numbers).all():
                raise MatchloomError(f"{folder} holds numbers that are not finite; {REMEDY}", code="damaged")
            tokenizer = Tokenizer.from_dict(saved.settings["tokenizer"])
            return cls(saved.inside("scorer"), Calibration(*numbers), tokenizer)
