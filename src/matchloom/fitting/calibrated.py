"""A scorer with a threshold and probabilities, both from development pairs (calibration.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from matchloom.basics.files import make_folder
from matchloom.calibration import Calibration, labels
from matchloom.explanation.mixed import term_of
from matchloom.fitting.folders import LOADERS as _INSIDE
from matchloom.fitting.folders import load_inside, save_inside
from matchloom.fitting.pair_classifier import PairClassifier
from matchloom.fitting.word_scorers import REMEDY
from matchloom.sealed import read_sealed, write_sealed
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair, Scorer, Scores, Trace

FILE, FORMAT = "calibrated.safetensors", 1
_INNER: dict[str, Callable[[Path], Scorer]] = {**_INSIDE, "pair_classifier": PairClassifier.load}


class Calibrated:
    """A scorer, the score from which on pairs are said to match, and how likely a score's pairs do."""

    kind = "calibrated"

    def __init__(self, scorer: Scorer, calibration: Calibration, tokenizer: Tokenizer) -> None:
        self.scorer, self.calibration, self.tokenizer = scorer, calibration, tokenizer
        self.threshold, self.name = calibration.threshold, scorer.name

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
        """Write the numbers, and the scorer in a folder inside."""
        folder = Path(folder)
        make_folder(folder)
        inner = save_inside(self.scorer, folder / "scorer")
        settings = {**self.calibration._asdict(), "tokenizer": self.tokenizer._asdict(), "scorer": inner}
        write_sealed(folder / FILE, self.kind, FORMAT, settings, {})

    @classmethod
    def load(cls, folder: Path | str) -> Calibrated:
        """Read what `save` wrote; what is missing, altered, exchanged or newer is refused in one line."""
        settings = read_sealed(Path(folder) / FILE, cls.kind, FORMAT, remedy=REMEDY).settings
        scorer = load_inside(settings["scorer"], Path(folder), _INNER)
        calibration = Calibration(*(float(settings[name]) for name in Calibration._fields))
        return cls(scorer, calibration, Tokenizer.from_dict(settings["tokenizer"]))
