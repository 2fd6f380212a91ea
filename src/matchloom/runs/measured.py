"""A run's matcher on its development pairs: figures beside baselines, and its best and worst questions, explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from matchloom.basics.extras import named_extras
from matchloom.data.formats import PairsLike, as_pairs
from matchloom.data.full_ranking import full_ranking
from matchloom.data.identity import with_ids
from matchloom.evaluation import evaluate
from matchloom.evaluation.report import Report
from matchloom.explanation import Explanation, explain
from matchloom.types import Pair

if TYPE_CHECKING:
    from matchloom.matcher import Matcher

_SHOWN = 5  # questions of either end
_MOST = 100_000  # pairs that are scored


@dataclass(frozen=True)
class Question:
    """A question, its positive and what came first, with the reasons for both where they differ."""

    query: str
    rank: int  # of the first positive
    first: Explanation
    right: Explanation | None  # None where it came first


@dataclass(frozen=True)
class RunMeasured:
    """What the page of a run shows of its development pairs."""

    report: Report
    worst: Sequence[Question]
    best: Sequence[Question]

    def lines(self, measure: str) -> dict[str, float]:
        """The baselines' figures by this measure, and the matcher's own on the same lists, which may be others than
        those that its run looked at."""
        found = {one.name: one.measured.values for one in self.report.baselines}
        found = {f"{self.report.name} here": self.report.values, **found}
        return {name: values[measure] for name, values in found.items() if measure in values}


@named_extras("a matcher")
def measure_run(folder: Path, pairs: PairsLike, measure: str = "RR", *, progress: bool = False) -> RunMeasured:
    """Measure the matcher that a run has kept; pairs without negatives are ranked against all of their texts."""
    from matchloom.matcher import Matcher  # brings torch, which a page of a run needs none of

    matcher = Matcher.load(folder)
    read = list(as_pairs(pairs, graded=True))
    if all(pair.is_positive for pair in read):
        read = full_ranking(read, most=_MOST)
    read = list(with_ids(read))
    names = dict.fromkeys([measure, "P@1", "RR", "AP"])
    report = evaluate(matcher, read, measures=list(names), progress=progress)
    asked = _ranked(matcher, report.subset.pairs)
    asked.sort(key=lambda one: (-one[0], -one[1], one[2]))
    ends = asked[:_SHOWN], [one for one in reversed(asked[_SHOWN:]) if one[0] == 1][:_SHOWN]
    worst, best = ([_question(matcher, *one) for one in end] for end in ends)
    return RunMeasured(report, worst, best)


def _ranked(matcher: Matcher, pairs: Sequence[Pair]) -> list[tuple[int, float, str, str, str]]:
    """Of each question: the rank of its positive, by how much it was missed, and the texts that matter."""
    scores = matcher.score(pairs)
    lists: dict[str, list[int]] = {}
    for n, pair in enumerate(pairs):
        lists.setdefault(pair.query_id, []).append(n)
    found = []
    for rows in lists.values():
        order = sorted(rows, key=lambda n: (-scores[n], pairs[n].text))
        right = next((place for place, n in enumerate(order) if pairs[n].is_labelled_positive), None)
        if right is None:
            continue
        other = next((n for n in order if not pairs[n].is_labelled_positive), order[-1])
        missed = float(np.float64(scores[other]) - np.float64(scores[order[right]]))
        texts = pairs[order[0]].text, pairs[order[right]].text
        found.append((right + 1, missed, pairs[order[0]].query, *texts))
    return found


def _question(matcher: Matcher, rank: int, _: float, query: str, first: str, right: str) -> Question:
    reason = explain(matcher, query, first)
    return Question(query, rank, reason, None if rank == 1 else explain(matcher, query, right))
