"""What a smoke run leaves of a task and a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments.reproduction.fast import fast_table, fast_task, few
from experiments.reproduction.tables import read_table
from matchloom.text.vectors import WordVectors
from matchloom.types import Pair
from tests.experiments.reproduction.conftest import colours, independent
from tests.training.making import colour_pairs


def test_few_queries_are_whole_lists_and_always_the_same() -> None:
    pairs = colour_pairs(60)
    some = few(pairs, 12)
    assert len(some) == 48
    assert len({pair.query_id for pair in some}) == 12
    assert set(few(pairs[::-1], 12)) == set(some)
    assert len(few(independent(pairs), 12)) == 12


def test_queries_that_say_nothing_come_last() -> None:
    alone = [Pair(f"query {n}", "text", 0.0, f"a{n}", "t") for n in range(50)]
    assert {pair.query_id[0] for pair in few([*alone, *colour_pairs(5)], 5)} == {"q"}


def test_vectors_are_cut(tmp_path: Path) -> None:
    task = colours(tmp_path, 0)._replace(vectors=WordVectors(["red"], np.ones((1, 100), np.float32)))
    cut = fast_task(task).vectors
    assert cut is not None
    assert cut.dimensions == 8
    table = fast_table(read_table("colours"))
    assert [row.seeds for row in table.rows] == [(0,)] * 4
    assert {row.train["epochs"] for row in table.rows} == {1}
    assert table.dimensions == 4
