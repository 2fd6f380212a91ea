"""The figures of a trained or fitted scorer on a task, as they stand in a results file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.reproduction.tables import PaperTable, Row
from experiments.reproduction.tasks import PaperTask
from matchloom.calibration import best_threshold, labels
from matchloom.data.formats import write_run
from matchloom.data.identity import digest, with_ids
from matchloom.evaluation import evaluate
from matchloom.evaluation.labelled import measure_labelled
from matchloom.evaluation.measures import as_float32
from matchloom.evaluation.report import Report
from matchloom.types import Pair, Scorer, Scores


class RowScores(NamedTuple):
    """The figures, and what they were computed from: the part of the task, its pairs and their scores."""

    figures: dict[str, Any]
    part: str
    pairs: list[Pair]
    scores: Scores


def measure_row(scorer: Scorer, row: Row, table: PaperTable, task: PaperTask) -> RowScores:
    """What the table wants to know of a row. Of one without test figures the scores are those of development."""
    return (_measure_pairs if table.kind == "pairs" else _measure_lists)(scorer, row, table, task)


def _measure_lists(scorer: Scorer, row: Row, table: PaperTable, task: PaperTask) -> RowScores:
    pairs, scores = _scored(scorer, task.development)
    development = evaluate(scores, pairs, measures=table.measures, subset=table.subsets[0], baselines=False)
    figures: dict[str, Any] = {"development": development.values}
    if not row.test:
        return RowScores(figures, "development", pairs, scores)
    pairs, scores = _scored(scorer, task.test)
    first, *others = (
        evaluate(
            scorer if row.baselines and subset == table.subsets[0] else scores,
            pairs,
            measures=table.measures,
            subset=subset,
            baselines=row.baselines and subset == table.subsets[0],
            vectors=task.vectors,
            tokenizer=task.tokenizer,
            collection=task.collection,
            progress=True,
        )
        for subset in table.subsets
    )
    figures |= {"test": first.values, "lowest": first.low, "highest": first.high}
    figures["other_subsets"] = {other.subset.protocol: other.values for other in others}
    if table.against:
        figures["per_query"] = {query: each[table.measures[0]] for query, each in first.per_query.items()}
    return RowScores(figures | (_beside(first) if row.baselines else {}), "test", pairs, scores)


def _beside(report: Report) -> dict[str, Any]:
    """Baselines, blind probes and warnings."""
    return {
        "probes": [{"name": p.name, "note": p.note, "values": p.measured.values, "p": p.p} for p in report.probes],
        "baselines": [{"name": f.name, "values": f.measured.values} for f in report.baselines],
        "warnings": report.warnings,
    }


def _measure_pairs(scorer: Scorer, row: Row, table: PaperTable, task: PaperTask) -> RowScores:
    """Pairs that match or not, by a threshold from the development pairs, whose own figures it therefore flatters.

    It is the best for those of accuracy and F1 that the table has. Where cross-entropy brought one it is not used: of
    every row it is chosen in the same way.
    """
    wanted = [name for name in table.measures if name in ("accuracy", "F1")]
    pairs, scores = _scored(scorer, task.development)
    threshold = best_threshold(scores.astype(np.float64), labels(pairs), wanted)
    figures: dict[str, Any] = {"threshold": threshold}
    for part in ("development", "test") if row.test else ("development",):
        pairs, scores = _scored(scorer, getattr(task, part))
        found = measure_labelled(scores, labels(pairs), threshold)
        figures[part] = {name: found.values[name] for name in table.measures}
    if row.test and table.against:
        each = zip(pairs, found.each[table.measures[0]].tolist(), strict=True)
        figures["per_query"] = {f"{pair.query_id} {pair.text_id}": value for pair, value in each}
    return RowScores(figures, part, pairs, scores)


def _scored(scorer: Scorer, pairs: Sequence[Pair]) -> tuple[list[Pair], Scores]:
    named = list(with_ids(pairs))
    return named, as_float32(scorer.score(named, progress=True), len(named))


def write_scores(path: Any, measured: RowScores, tag: str) -> None:
    """The scores as a TREC run; ids that TREC cannot have (with spaces, or twice in a list) are made from content."""
    pairs = measured.pairs
    ids = [(pair.query_id, pair.text_id) for pair in pairs]
    if len(set(ids)) < len(ids) or any(one.split() != [one] for both in ids for one in both):
        pairs = list(with_ids(pair._replace(query_id=digest(pair.query_id), text_id="") for pair in pairs))
    write_run(path, pairs, measured.scores, "_".join(tag.split()))
