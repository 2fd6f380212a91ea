"""What `fit` found, as figures and plain words. It shows itself in the terminal, as a page and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from matchloom.basics.screen import printable
from matchloom.data.kinds import PAIRS

FAR = 0.6  # how often a test question must be farther from the file than one of its own to be warned of


@dataclass(frozen=True)
class SystemFigures:
    """One system: what it is, its figures on development and test questions, and its cost.

    `p` is the chance of its difference from the chosen system on the test questions, were both equally good; None for
    the chosen one. `error` says why it could not be made. A baseline is there for comparison.
    """

    name: str
    about: str
    development: Mapping[str, float] = field(default_factory=dict)
    test: Mapping[str, float] = field(default_factory=dict)
    p: float | None = None
    seconds: float = 0.0
    error: str = ""
    baseline: bool = False

    @property
    def shown_p(self) -> str:
        """As it is shown in tables and sentences."""
        return "" if self.p is None else "<.001" if self.p < 0.001 else f"{self.p:.3f}"


@dataclass(frozen=True)
class Asked:
    """A test question that is worth a look: what was right, what came first, and why that did."""

    question: str
    right: str
    first: str
    rank: int | None  # of the right answer; None where it was not found
    score: float
    words: Sequence[tuple[str, float]] = ()  # what moved the score of the first answer most, with its contribution


@dataclass(frozen=True)
class Confusion:
    """Two answers that are taken for one another: the right one, the one that came first, and how often."""

    right: str
    first: str
    times: int
    example: str  # a question


@dataclass(frozen=True)
class Promise:
    """A precision or a coverage that may be stated in a search: what it took, and what it gave on test questions.

    `threshold` is None where held-out questions cannot prove it, `precision` where nothing was shown.
    """

    stated: float
    threshold: float | None
    coverage: float = 0.0  # the part of the test questions that got an answer
    precision: float | None = None  # of these answers, the part that was right


@dataclass(frozen=True)
class Likeness:
    """How like each other the questions of the file are, and what the figure owes to that.

    `random` is the measure of held-out questions whose similar ones were known, and `by_cluster` that of the same
    questions when these were held out, too; None where too few could be asked.
    """

    questions: int
    copies: float  # the part of the questions that have a near copy with the same answer
    similar: float  # a similar one
    asked: int = 0
    random: float | None = None
    by_cluster: float | None = None


@dataclass(frozen=True)
class Distance:
    """How far test questions of the user's own are from the file, beside questions of the file, each held out alone.

    `nearest` are the 10%, 50% and 90% quantiles of the cosine with the nearest other question of the file; `farther` is
    how often a test question is farther away than one of the file: half of the time where they are alike.
    """

    questions: int
    compared: int
    unknown_words: float  # the part of the words that no other question of the file has
    unknown_words_of_file: float
    nearest: Sequence[float]
    nearest_of_file: Sequence[float]
    farther: float

    @property
    def is_far(self) -> bool:
        """Whether figures of the file's own questions say too much of such questions."""
        return self.farther >= FAR


@dataclass(frozen=True)
class FitReport:
    """Everything about one `fit`."""

    kind: str
    about: str  # what the file is, with counts
    measure: str  # the one that chose
    measures: Sequence[str]
    systems: Sequence[SystemFigures]
    chosen: str
    tested: int  # test questions (or pairs)
    developed: int  # development questions (or pairs)
    verdict: Sequence[str]
    minutes: float = 0.0
    curve: Sequence[tuple[int, Mapping[str, float]]] = ()  # training questions, and the measure of each system
    confusions: Sequence[Confusion] = ()
    best: Sequence[Asked] = ()
    worst: Sequence[Asked] = ()
    notes: Sequence[str] = ()
    promises: Sequence[Promise] = ()
    coverages: Sequence[Promise] = ()
    chosen_before: str = ""  # what development questions chose, where the test questions were clearly against it
    language: str = ""  # that the texts were taken for
    likeness: Likeness | None = None  # of the file's questions, where answers have several
    distance: Distance | None = None  # of the user's own test questions
    known: int = 0  # of the user's own test questions, those that stand among the questions it learnt from
    texts_alone: bool = False  # test questions met the texts of answers whose only question is held out

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists and numbers, as fit.json keeps them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> FitReport:
        """What `to_dict` gave; what is of another kind raises msgspec.ValidationError."""
        return msgspec.convert(plain, cls)

    def __rich__(self) -> Group:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column("system")
        for name in self.measures:
            table.add_column(name, justify="right")
        table.add_column("p", justify="right")
        table.add_column("seconds", justify="right")
        table.add_column("")
        for one in self.systems:
            chosen = one.name == self.chosen
            values = [f"{one.test[name]:.3f}" if name in one.test else "" for name in self.measures]
            figures = (Text(cell) for cell in (*values, one.shown_p, f"{one.seconds:.1f}"))
            about = "not measured, see below" if one.error else f"{'(chosen) ' if chosen else ''}{one.about}"
            # One line each, so that figures stand below figures; the page has all of it.
            table.add_row(
                Text(printable(one.name)),
                *figures,
                Text(printable(about), no_wrap=True, overflow="ellipsis"),
                style="bold" if chosen else "dim" if one.error else "",
            )
        unit = "pair" if self.kind == PAIRS else "question"
        count = f"{self.tested:,} test {unit}{'' if self.tested == 1 else 's'}"
        return Group(
            Text(printable(f"On {count}, measured once (p: difference from {self.chosen}):")),
            table,
            *(Text(printable(f"{one.name}: {one.error}"), "dim") for one in self.systems if one.error),
            Text(),
            *(Text(printable(line), "bold" if n == 0 else "") for n, line in enumerate(self.verdict)),
            *(Text(line) for line in _promised(self.promises)),
            *(Text(printable(f"Note: {line}"), "dim") for line in self.notes),
        )

    def _repr_html_(self) -> str:
        from matchloom.fitting.page import fragment

        return fragment(self)

    def __repr__(self) -> str:
        return f"FitReport({self.kind}, chosen {self.chosen!r}, {len(self.systems)} systems, {self.tested} tested)"


def _promised(promises: Sequence[Promise]) -> list[str]:
    """What a stated precision gives, in a line."""
    shown = [
        f"{one.stated:.0%}: {one.coverage:.0%} of the questions get an answer ({one.precision:.1%} right on test)"
        for one in promises
        if one.threshold is not None and one.precision is not None
    ]
    return [f"With --precision, at least this part of the answers is right. {'; '.join(shown)}."] if shown else []
