"""What `fit` asks of the systems of one kind of file, whatever the kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair, Scorer


class Data(NamedTuple):
    """The parts of a user's file."""

    train: list[Pair]
    development: list[Pair]
    test: list[Pair]


class Outcome(NamedTuple):
    """The figures of a scorer: each measure's mean, and its value for each question in an order of their own."""

    values: Mapping[str, float]
    each: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Candidate:
    """A system that `fit` may choose: how it is made from training pairs.

    `make` gets training and development pairs, a folder of its own to work in, and the seconds it may take; a baseline
    is shown for comparison and is chosen only where nothing beats it by more than chance. One that is `doubtful` looked
    at the development pairs while it was made, and is chosen only where it beats the others by more than chance. One
    that is `shown_only` is never chosen.
    """

    name: str
    about: str
    make: Callable[[Sequence[Pair], Sequence[Pair], Path, float], Scorer]
    baseline: bool = False
    seconds: float = 1.0  # a guess of how long it takes, to be told beforehand
    doubtful: bool = False
    shown_only: bool = False


class Task(Protocol):
    """One kind of file."""

    @property
    def measure(self) -> str:
        """What chooses."""
        ...

    @property
    def measures(self) -> Sequence[str]:
        """What is reported."""
        ...

    def split(self, pairs: Sequence[Pair], seed: int) -> Data:
        """Training, development and test pairs; what belongs together stays together."""

    def candidates(self, pairs: Sequence[Pair], tokenizer: Tokenizer, seed: int) -> list[Candidate]:
        """The short list that suits these pairs, the simplest first."""

    def measure_on(self, scorer: Scorer, pairs: Sequence[Pair]) -> Outcome:
        """The figures of a scorer on questions that it has not learnt from."""

    def details(self, scorer: Scorer, pairs: Sequence[Pair]) -> dict[str, Any]:
        """What a report shows beside figures: confusions, best and worst questions (fields of FitReport)."""
