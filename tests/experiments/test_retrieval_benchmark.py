"""What experiments.benchmarks.retrieval and its task measure on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from experiments.benchmarks import retrieval
from experiments.reproduction import tasks as published
from matchloom.evaluation.measures import CandidateLists
from matchloom.types import Pair


def test_an_archive_asks_every_question_of_every_text() -> None:
    pairs = [
        Pair("wool?", "yarn", 0.0, "1", "1_R1"),
        Pair("wool?", "yarn", 1.0, "1", "1_R4"),  # twice in one list: right if either is
        Pair("silk?", "silk", 1.0, "2", "2_R1"),
        Pair("silk?", "yarn", 0.0, "2", "2_R2"),
    ]
    assert [pair[:4] for pair in retrieval.archive_of(pairs)] == [
        ("wool?", "silk", None, "1"),
        ("wool?", "yarn", 1.0, "1"),
        ("silk?", "silk", 1.0, "2"),
        ("silk?", "yarn", 0.0, "2"),
    ]


def test_alpha_has_the_highest_map_over_the_questions_of_all_fifths() -> None:
    lists = [
        CandidateLists(["q", "q"], ["a", "b"], [1, 0], ["AP"]),
        CandidateLists(["r", "r"], ["a", "b"], [1, 0], ["AP"]),
    ]
    # The first fifth is right where 0.3 alpha > 0.28 (1 - alpha), the second where 0.4 (1 - alpha) > 0.1 alpha.
    parts = [
        {"x": np.array([0.3, 0.0]), "y": np.array([0.0, 0.28])},
        {"x": np.array([0.0, 0.1]), "y": np.array([0.4, 0.0])},
    ]
    row = retrieval.tuned({"name": "x + y", "first": "x", "second": "y"}, parts, lists)
    assert row["alpha"] == 0.7  # of 0.5 to 0.75, where both are right, the paper's
    assert row["train"] == 1.0
    assert dict(row["curve"])[0.0] == dict(row["curve"])[1.0] == 0.75
    alone = retrieval.tuned({"name": "x", "first": "x"}, parts, lists)
    assert (alone["alpha"], alone["train"]) == (None, 0.75)


@pytest.mark.data
def test_the_fifths_hold_out_each_training_question_once(data_dir: Path) -> None:
    tasks = [published.semeval(data_dir, seed) for seed in range(5)]
    held_out = Counter(query for task in tasks for query in {pair.query_id for pair in task.development})
    assert len(held_out) == 267
    assert set(held_out.values()) == {1}
    for task in tasks:
        assert not {pair.query for pair in task.train} & {pair.query for pair in (*task.development, *task.test)}
        assert len(task.train) + len(task.development) == 2628
