from __future__ import annotations

import pytest

from matchloom.evaluation.subset import select_questions
from matchloom.types import Pair
from tests.refusing import refused

PAIRS = [
    Pair("?", "1", 1, query_id="both"),
    Pair("?", "2", 0, query_id="negative"),
    Pair("?", "3", 0, query_id="both"),
    Pair("?", "4", 2, query_id="positive"),
    Pair("?", "5", 0, query_id="negative"),
]


@pytest.mark.parametrize(
    ("protocol", "rows", "line"),
    [
        (
            "both",
            [0, 2],
            "1 of 3 questions (with a positive and a negative; "
            "left out 1 without a positive and 1 without a negative), 2 pairs",
        ),
        ("positive", [0, 2, 3], "2 of 3 questions (with a positive; left out 1 without a positive), 3 pairs"),
        ("all", [0, 1, 2, 3, 4], "3 of 3 questions (all; none left out), 5 pairs"),
    ],
)
def test_protocols(protocol: str, rows: list[int], line: str) -> None:
    subset = select_questions(PAIRS, protocol)
    assert subset.rows == rows
    assert subset.pairs == [PAIRS[row] for row in rows]
    assert (subset.questions, subset.without_positive, subset.without_negative) == (3, 1, 1)
    assert subset.line() == line


def test_nothing_left_and_unknown_names_are_told() -> None:
    with refused("bad_labels", "1", "'both'"):
        select_questions(PAIRS[1:2])
    with refused("unknown_name", "'clean'"):
        select_questions(PAIRS, "clean")
