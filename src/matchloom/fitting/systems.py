"""What `fit` asks of the systems of one kind of file, whatever the kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.data.identity import questions_of
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair, Scorer

Round = tuple[list[Pair], list[Pair]]  # training and development pairs


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
    is shown for comparison and is chosen only where nothing beats it by more than chance. One that saw the development
    pairs while it was made `needs_significance`: it is chosen only where it beats the others by more than chance. One
    that is `report_only` is never chosen. One that `learns_all` needs no development pairs: it gets none, and for the
    test questions it learns from them, too. One that can `finish` is made so once it is chosen: as `make` does, but in
    more time, which the rounds are spared.
    """

    name: str
    about: str
    make: Callable[[Sequence[Pair], Sequence[Pair], Path, float], Scorer]
    baseline: bool = False
    seconds: float = 1.0  # a guess of how long it takes, shown beforehand
    needs_significance: bool = False
    report_only: bool = False
    learns_all: bool = False
    finish: Callable[[Sequence[Pair], Sequence[Pair], Path, float], Scorer] | None = None
    finish_seconds: float = 0.0  # a guess of how much longer that takes


class Task(ABC):
    """One kind of file: how it is split, what is tried on it and for how long, how that is measured and made again.

    What stands here suits systems that are trained once and kept as they were measured: another training might end
    elsewhere.
    """

    unanswerable: Sequence[str] = ()  # questions of the file that have no answer
    tune: bool = True  # whether a pretrained encoder may be tuned on the questions
    own_test: bool = False  # whether the test pairs are the user's own

    measure: ClassVar[str]  # what chooses
    measures: ClassVar[tuple[str, ...]]  # what is reported
    unit: ClassVar[str] = "questions"  # what is counted
    made_again: ClassVar[bool] = False  # whether a system is made again for the test questions

    def __init__(self, encoder: Path | None = None) -> None:
        self.encoder = encoder

    @abstractmethod
    def split(self, pairs: Sequence[Pair], seed: int) -> Data:
        """Training, development and test pairs; what belongs together stays together."""

    @abstractmethod
    def candidates(self, pairs: Sequence[Pair], tokenizer: Tokenizer, seed: int) -> list[Candidate]:
        """The short list that suits these pairs, the simplest first."""

    @abstractmethod
    def measure_on(self, scorer: Scorer, pairs: Sequence[Pair]) -> Outcome:
        """The figures of a scorer on held-out questions."""

    @abstractmethod
    def details(self, scorer: Scorer, pairs: Sequence[Pair]) -> dict[str, Any]:
        """What a report shows beside figures: confusions, best and worst questions (fields of FitReport)."""

    def split_with(self, pairs: Sequence[Pair], test: Sequence[Pair], seed: int) -> Data:
        """The same where the user has test pairs: what would have been held out for them is learnt from."""
        data = self.split(pairs, seed)
        return Data([*data.train, *data.test], data.development, list(test))

    def rounds(self, data: Data, seed: int) -> list[Round]:
        """Training and development pairs, as often as systems are compared."""
        return [(data.train, data.development)]

    def count(self, pairs: Sequence[Pair]) -> int:
        """How many things a figure over these pairs is of."""
        return len(questions_of(pairs))

    def note(self, pairs: Sequence[Pair]) -> str:
        """What a user should know of how the pairs are read, if anything."""
        return ""

    def learnt(self, scorer: Scorer) -> str:
        """What a user should know of how a system was made, if anything."""
        return ""

    def guess(self, candidates: Sequence[Candidate], rounds: int) -> float:
        """The seconds that all candidates will take."""
        return sum(one.seconds for one in candidates)

    def needed(self, one: Candidate, done: Mapping[Candidate, float], rounds: int) -> float:
        """The seconds that one more candidate will take, where those that are done took so many a round."""
        return one.seconds * rounds

    def curve(self, train: list[Pair], seed: int) -> list[tuple[int, list[Pair]]]:
        """Parts of the training pairs for a learning curve, each with its count of questions; none for no curve."""
        return []

    def learns_more(self, data: Data, pairs: Sequence[Pair]) -> bool:
        """Whether there is more to learn from than was, for a chosen system that can be made again from all pairs."""
        return False
