from __future__ import annotations

from experiments.corpora.subsets import answered, both_labels
from matchloom.types import Pair


def test_which_lists_are_kept() -> None:
    labels = {"all wrong": [0.0, 0.0], "all right": [1.0], "both": [0.0, 1.0], "graded": [2.0, 0.0], "none": [None]}
    pairs = [Pair("q", "t", label, query_id) for query_id, some in labels.items() for label in some]
    assert {pair.query_id for pair in answered(pairs)} == {"all right", "both", "graded"}
    assert both_labels(pairs) == [pair for pair in pairs if pair.query_id in ("both", "graded")]
