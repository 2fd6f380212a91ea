"""Measuring by shards: an engine scores the rows, and of each only its list, its label and its score are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from matchloom.basics.extras import need
from matchloom.batch.run import run_batch
from matchloom.batch.shards import opened, read_tables
from matchloom.batch.works import Function, ScoreWork, pairs_of
from matchloom.data.identity import content_id, digest, tell_apart
from matchloom.evaluation import Report
from matchloom.evaluation.by_parts import report_of_parts
from matchloom.evaluation.measures import DEFAULT_MEASURES
from matchloom.types import Pair, Scores

PART = 1_000_000  # rows that are measured at a time, about: each some hundred bytes
_NAME = b"matchloom.scorer"


@dataclass(frozen=True)
class MeasureWork(ScoreWork):
    """What measures need of a scored pair: ids, label and score, in place of the texts."""

    def open(self) -> Function:
        """The function that scores."""
        scorer, arrow = self._scorer(), need("pyarrow")

        def measure(table: Any) -> Any:
            pairs = pairs_of(table, self.columns, ids=False)
            lists = [pair.query_id or digest(pair.query) for pair in pairs]
            made = arrow.table(
                {
                    "query_id": arrow.array(lists, arrow.string()),
                    "text_id": arrow.array([pair.text_id for pair in pairs], arrow.string()),
                    "content": arrow.array([content_id(pair) for pair in pairs], arrow.string()),
                    "label": arrow.array([pair.label for pair in pairs], arrow.float64()),
                    "score": arrow.array(scorer.score(pairs), arrow.float32()),
                    "part": arrow.array([_number(one) for one in lists], arrow.uint32()),
                }
            )
            return made.replace_schema_metadata({_NAME: scorer.name})

        return measure


def evaluate_shards(
    work: MeasureWork,
    source: Path | str,
    out: Path | str,
    *,
    measures: Iterable[str] = DEFAULT_MEASURES,
    subset: str = "both",
    engine: str = "local",
    address: str | None = None,
    progress: bool = False,
) -> Report:
    """Measure a scorer on shards of labelled pairs: the figures of `evaluate`, without baselines and blind probes.

    A question's pairs may stand in several shards.

    Args:
        work: The scorer, and the names of the columns.
        source: A folder of Parquet files, or one file.
        out: The folder for ids, labels and scores; what is finished there is not scored again.
        measures: ir-measures names.
        subset: Which questions count: "both", "positive" or "all".
        engine: As for `run_batch`, as is `address`.
        address: Of a Ray cluster.
        progress: Whether to show a bar.
    """
    paths = run_batch(work, source, out, engine=engine, address=address, progress=progress).files
    rows, name = 0, work.scorer
    for path in paths:
        with opened(path) as file:
            rows += file.metadata.num_rows
            name = (file.schema_arrow.metadata or {}).get(_NAME, name.encode()).decode("utf-8", "replace")
    count = max(1, -(-rows // PART))
    parts = (_part(paths, number, count) for number in range(count))
    return report_of_parts(name, parts, measures=measures, subset=subset, seed=work.seed)


def _part(paths: Sequence[Path], number: int, count: int) -> tuple[list[Pair], Scores]:
    """The lists whose number falls to this part."""
    pairs: list[Pair] = []
    scores: list[Any] = [np.empty(0, np.float32)]
    seen: Counter[str] = Counter()
    for path in paths:
        for table in _rows_of(path, number, count):
            scores.append(table["score"].to_numpy())
            columns = (table[name].to_pylist() for name in ("query_id", "text_id", "content", "label"))
            for query_id, text_id, content, label in zip(*columns, strict=True):
                pairs.append(Pair("", "", label, query_id, text_id or tell_apart(content, seen)))
    return pairs, np.concatenate(scores)


def _rows_of(path: Path, number: int, count: int) -> Iterator[Any]:
    arrow = need("pyarrow")
    for table in read_tables(path):
        yield table.filter(arrow.array(table["part"].to_numpy() % count == number))


def _number(query_id: str) -> int:
    """Where a list falls, whatever ids look like."""
    return int(digest(query_id)[:8], 16)
