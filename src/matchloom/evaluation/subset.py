"""Which questions count. The same scores give quite different figures with and without the all-positive ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matchloom.evaluation.measures import whole_label
from matchloom.types import MatchloomError, Pair

SUBSETS = {
    "both": "with a positive and a negative",
    "positive": "with a positive",
    "all": "all",
}


@dataclass(frozen=True)
class Subset:
    """The pairs of the questions that count, and how many questions were left out and why."""

    protocol: str
    pairs: list[Pair]
    rows: list[int]  # where the pairs stood
    questions: int  # how many there were
    kept: int
    without_positive: int  # of all questions, whether left out or not
    without_negative: int
    count: int  # pairs of the questions that count, also where the pairs themselves are not kept

    def line(self) -> str:
        """One line for a report."""
        left_out = []
        if self.protocol in ("both", "positive") and self.without_positive:
            left_out.append(f"{self.without_positive} without a positive")
        if self.protocol == "both" and self.without_negative:
            left_out.append(f"{self.without_negative} without a negative")
        reason = f"left out {' and '.join(left_out)}" if left_out else "none left out"
        return f"{self.kept} of {self.questions} questions ({SUBSETS[self.protocol]}; {reason}), {self.count} pairs"


def select_questions(pairs: Sequence[Pair], protocol: str = "both") -> Subset:
    """Keep the questions that count: "both" labels present (the default), a "positive" present, or "all".

    A question is a query_id. A question without a positive is worth 0 to every scorer, one without a negative 1:
    they measure nothing and move the figure. Where none counts it is refused.
    """
    found = questions_that_count(pairs, protocol)
    refuse_none(found)
    return found


def refuse_none(found: Subset) -> None:
    """Say what to do where no question counts."""
    if found.kept:
        return
    raise MatchloomError(
        f"none of {found.questions} questions counts under subset {found.protocol!r} ({SUBSETS[found.protocol]}); "
        "check the label column, or choose another subset (independent labelled pairs: "
        "evaluate_pairs, or kind='pairs')",
        code="bad_labels",
    )


def questions_that_count(pairs: Sequence[Pair], protocol: str) -> Subset:
    """The same, also where there are none."""
    if protocol not in SUBSETS:
        raise MatchloomError(f"subset {protocol!r} is unknown; choose one of {', '.join(SUBSETS)}", code="unknown_name")
    seen: dict[str, set[bool]] = {}
    for pair in pairs:
        seen.setdefault(pair.query_id, set()).add(whole_label(pair) > 0)
    counts = {
        "both": {query for query, labels in seen.items() if len(labels) == 2},
        "positive": {query for query, labels in seen.items() if True in labels},
        "all": set(seen),
    }[protocol]
    rows = [row for row, pair in enumerate(pairs) if pair.query_id in counts]
    return Subset(
        protocol,
        [pairs[row] for row in rows],
        rows,
        len(seen),
        len(counts),
        sum(True not in labels for labels in seen.values()),
        sum(False not in labels for labels in seen.values()),
        len(rows),
    )
