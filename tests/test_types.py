"""The types that everything speaks."""

from __future__ import annotations

import pickle

import pytest

from matchloom import Pair
from matchloom.types import MatchloomError


@pytest.mark.parametrize(
    ("label", "positive", "labelled"), [(None, True, False), (0.0, False, False), (1.0, True, True), (0.5, True, True)]
)
def test_a_pair_without_a_label_is_positive_but_nobody_said_so(
    label: float | None, positive: bool, labelled: bool
) -> None:
    pair = Pair("a loom?", "yes", label)
    assert (pair.is_positive, pair.is_labelled_positive) == (positive, labelled)


def test_an_error_keeps_its_code_in_another_process() -> None:
    error = pickle.loads(pickle.dumps(MatchloomError("a.tsv, line 3: label is 'x'", code="bad_row")))
    assert (str(error), error.code) == ("a.tsv, line 3: label is 'x'", "bad_row")
    assert MatchloomError("x").code == "invalid"
