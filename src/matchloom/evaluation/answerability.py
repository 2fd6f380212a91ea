"""Does a collection detect questions without an answer? Measured on questions with answers and on some without.

AUROC              how often a question with an answer gets a higher answerability than one without
recall at 95%      of the questions without an answer, how many are refused where 95% of the others are kept
ECE                expected calibration error: how far probabilities of first answers are from how often they are
                   right, over ten bins; a first answer to a question that has none is wrong
selective          answers are given in the order of their probability: for each part of the questions (coverage), how
                   many of the answers are right (precision). Answers of the same probability are given together
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.console import Group
from rich.table import Table
from rich.text import Text

from matchloom.data.formats import PairsLike, as_pairs
from matchloom.data.identity import questions_of
from matchloom.data.unanswerable import without_unanswerable
from matchloom.types import Hits, MatchloomError

KEPT = 0.95
COVERAGES = tuple(n / 10 for n in range(1, 11))
_BINS = 10
Floats = NDArray[np.float64]


class _Entries(Protocol):
    @property
    def ids(self) -> Sequence[str]: ...

    def find(self, text: str, text_id: str = "") -> int | None: ...


class Answers(Protocol):
    """What is asked: a collection of answers."""

    @property
    def name(self) -> str:
        """What ranks."""
        ...

    @property
    def entries(self) -> _Entries:
        """Answers with their ids."""
        ...

    def search(self, question: Sequence[str], *, top: int | None = 10) -> list[Hits]:
        """The best answers to each question, the best first."""
        ...


class Selected(NamedTuple):
    """The most probable answers: which part of the questions gets one, how many are right, and the threshold."""

    coverage: float
    precision: float
    threshold: float  # the least probability (or `known`, where answers have none) that is shown


@dataclass(frozen=True)
class AnswerabilityReport:
    """The figures of one collection; None where the file or the collection lacks what it takes. It shows itself."""

    scorer: str
    answerable: int
    unanswerable: int
    first_right: float  # P@1 of the answerable questions
    auroc: float | None
    recall: float | None
    calibration_error: float | None
    selective: Sequence[Selected]

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists and numbers."""
        return {**asdict(self), "kept": KEPT, "selective": [one._asdict() for one in self.selective]}

    def __rich__(self) -> Group:
        figures_by_name = {
            "AUROC of answerable against unanswerable": self.auroc,
            f"unanswerable refused where {KEPT:.0%} of the answerable are kept": self.recall,
            "expected calibration error": self.calibration_error,
        }
        figures = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        for name, value in figures_by_name.items():
            figures.add_row(name, "not available" if value is None else f"{value:.3f}")
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for name in ("questions answered", "right", "from probability"):
            table.add_column(name, justify="right")
        for one in self.selective:
            table.add_row(f"{one.coverage:.0%}", f"{one.precision:.1%}", f"{one.threshold:.2f}")
        count = f"{self.answerable:,} questions with an answer, {self.unanswerable:,} without"
        return Group(Text(f"Does it detect questions without an answer? {count}"), figures, Text(), table)


def evaluate_answers(collection: Answers, pairs: PairsLike) -> AnswerabilityReport:
    """Ask every question of the pairs; an empty text, or one that is `no_answer`, says that there is none.

    Args:
        collection: What `fit` kept (`matchloom.load`), or any Collection.
        pairs: Questions with their answers, and questions without; negatives (label 0) are not used.
    """
    rows, outside = without_unanswerable((pair, None) for pair in as_pairs(pairs))
    asked = questions_of([pair for pair, _ in rows])
    if not asked:
        raise MatchloomError("no question has an answer; at least one is needed to measure", code="bad_labels")
    others = sorted(set(outside) - asked.keys())
    entries = collection.entries
    found = collection.search([*asked, *others], top=1)
    right = np.zeros(len(found), dtype=bool)
    for n, (golds, hits) in enumerate(zip(asked.values(), found, strict=False)):
        rows_of = (entries.find(pair.text, pair.text_id) for pair in golds)
        right[n] = bool(hits) and hits[0].id in {entries.ids[row] for row in rows_of if row is not None}
    known = _values([hits.known for hits in found])
    likely = _values([hits[0].probability if hits else 0.0 for hits in found])
    surest = likely if likely is not None else known
    count = len(asked)
    both = known is not None and bool(others)
    return AnswerabilityReport(
        collection.name,
        count,
        len(others),
        float(right[:count].mean()),
        auroc(known[:count], known[count:]) if both and known is not None else None,
        recall_at_kept(known[:count], known[count:]) if both and known is not None else None,
        None if likely is None else calibration_error(likely, right),
        [] if surest is None else selective(surest, right),
    )


def auroc(answerable: Floats, unanswerable: Floats) -> float:
    """How often the first is higher of one each; equal values count half.

    >>> auroc(np.array([0.9, 0.4]), np.array([0.4, 0.1]))
    0.875
    """
    others = np.sort(unanswerable)
    below = np.searchsorted(others, answerable, "left") + np.searchsorted(others, answerable, "right")
    return float(below.mean() / (2 * len(others)))


def recall_at_kept(answerable: Floats, unanswerable: Floats, kept: float = KEPT) -> float:
    """The part of the unanswerable below the highest threshold that keeps so many of the answerable."""
    lost = int(np.floor((1 - kept) * len(answerable) + 1e-9))
    return float((unanswerable < np.sort(answerable)[lost]).mean())


def calibration_error(likely: Floats, right: NDArray[np.bool_]) -> float:
    """Expected, over ten bins of equal width."""
    bins = np.minimum((likely * _BINS).astype(int), _BINS - 1)
    apart = np.bincount(bins, likely - right, _BINS)
    return float(np.abs(apart).sum() / len(likely))


def selective(surest: Floats, right: NDArray[np.bool_], coverages: Sequence[float] = COVERAGES) -> list[Selected]:
    """At least so many of the questions get an answer, the most probable first; equal ones are shown together."""
    order = np.sort(surest)[::-1]
    found = []
    for wanted in coverages:
        threshold = order[min(len(order), max(1, int(np.ceil(wanted * len(order) - 1e-9)))) - 1]
        shown = surest >= threshold
        found.append(Selected(float(shown.mean()), float(right[shown].mean()), float(threshold)))
    return list(dict.fromkeys(found))


def _values(found: Sequence[float | None]) -> Floats | None:
    """The numbers, or None where one is missing: then none was earned."""
    return None if any(one is None for one in found) else np.array(found, dtype=np.float64)
