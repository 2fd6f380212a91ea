"""A report of more pairs than memory holds: whole lists at a time, of which the figures of each question are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from matchloom.evaluation.measures import DEFAULT_MEASURES, CandidateLists, Measured, as_float32, parse_measures
from matchloom.evaluation.report import Report, independent_warnings, tie_warnings
from matchloom.evaluation.subset import Subset, questions_that_count, refuse_none
from matchloom.evaluation.ties import TieBounds, bounds_of
from matchloom.types import Pair, Scores


def report_of_parts(
    name: str,
    parts: Iterable[tuple[Sequence[Pair], Scores]],
    *,
    measures: Iterable[str] = DEFAULT_MEASURES,
    subset: str = "both",
    seed: int = 0,
) -> Report:
    """The report of `evaluate` without baselines and probes, which need the texts; it keeps no pairs.

    Args:
        name: Of the scorer.
        parts: Labelled pairs with ids, and their scores; all pairs of a question are in one part.
        measures: ir-measures names.
        subset: Which questions count, as for `evaluate`.
        seed: For the report.
    """
    parsed = parse_measures([measures] if isinstance(measures, str) else measures)
    total = Subset(subset, [], [], 0, 0, 0, 0, 0)
    found: list[tuple[Measured, TieBounds]] = []
    pairs, low, high = 0, np.inf, -np.inf
    for rows, given in parts:
        chosen = questions_that_count(rows, subset)
        pairs += len(rows)
        total = _added(total, chosen)
        if not chosen.kept:
            continue
        lists = CandidateLists.of(chosen.pairs, parsed)
        scores = as_float32(given, len(rows))[chosen.rows]
        found.append((lists.measure(scores), bounds_of(lists, scores)))
        low, high = min(low, float(scores.min())), max(high, float(scores.max()))
    refuse_none(total)

    def joined(some: Sequence[Measured]) -> Measured:
        queries = [query for one in some for query in one.queries]
        order = np.argsort(np.array(queries, dtype=object), kind="stable")
        columns = {key: np.concatenate([one.per_query[key] for one in some])[order] for key in parsed}
        return Measured.of([queries[n] for n in order], columns, parsed)

    measured = joined([one for one, _ in found])
    ties = sum(bounds.tied_queries for _, bounds in found)
    bounds = TieBounds(joined([one.low for _, one in found]), joined([one.high for _, one in found]), ties)
    warnings = independent_warnings(total, pairs)
    warnings += tie_warnings(measured, bounds, constant=total.count > 1 and low == high)
    return Report(name, total, measured, bounds, [], [], warnings, seed)


def _added(total: Subset, one: Subset) -> Subset:
    return Subset(
        total.protocol,
        [],
        [],
        total.questions + one.questions,
        total.kept + one.kept,
        total.without_positive + one.without_positive,
        total.without_negative + one.without_negative,
        total.count + one.count,
    )
