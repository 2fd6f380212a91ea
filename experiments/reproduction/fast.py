"""A smoke run: every row of a table in seconds, to see that it works. Its figures mean nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from experiments.reproduction.tables import PaperTable
from experiments.reproduction.tasks import PaperTask
from matchloom.data.identity import digest
from matchloom.text.vectors import WordVectors
from matchloom.types import Pair

QUERIES = {"train": 120, "development": 40, "test": 40}
DIMENSIONS = 8


def fast_table(table: PaperTable) -> PaperTable:
    """The table with one epoch and one seed a row."""
    rows = tuple(replace(row, seeds=row.seeds[:1], train={**row.train, "epochs": 1}) for row in table.rows)
    return replace(table, rows=rows, dimensions=min(table.dimensions, DIMENSIONS))


def fast_task(task: PaperTask) -> PaperTask:
    """Few of its queries, always the same, and the first numbers of its word vectors."""
    vectors = task.vectors
    if vectors is not None:
        vectors = WordVectors(vectors.words, vectors.matrix[:, :DIMENSIONS].copy())
    train, development, test = (few(getattr(task, part), count) for part, count in QUERIES.items())
    return task._replace(train=train, development=development, test=test, vectors=vectors)


def few(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """The pairs of so many queries, drawn by digests; those with positives and negatives first, others say nothing."""
    labels: dict[str, set[bool]] = {}
    for pair in pairs:
        labels.setdefault(_query(pair), set()).add(pair.is_labelled_positive)
    order = sorted(labels, key=lambda query: (len(labels[query]) < 2, digest("fast", query)))
    kept = set(order[:count])
    return [pair for pair in pairs if _query(pair) in kept]


def _query(pair: Pair) -> str:
    return pair.query_id or digest(pair.query)
