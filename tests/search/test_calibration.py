from __future__ import annotations

import numpy as np
import pytest

from matchloom.search.calibration import Calibration, learn_calibration
from matchloom.search.fusion import Cases


def cases(right_first: float, count: int = 200) -> Cases:
    """Questions with three answers, scored 2, 1 and 0; the first is right so often, else the others in turn."""
    features = np.tile(np.array([2.0, 1.0, 0.0])[None, :, None], (count, 1, 1))
    right = np.zeros((count, 3), dtype=bool)
    first = np.arange(count) < right_first * count
    right[first, 0] = True
    right[~first, 1 + np.arange(count)[~first] % 2] = True
    return Cases(features, np.ones((count, 3), dtype=bool), right, np.ones(count), 1.0, np.linspace(0.1, 1, count))


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
def test_what_is_told_is_what_happens(share: float) -> None:
    found = learn_calibration(cases(share), np.ones(1))
    told = found.probabilities(np.array([2.0, 1.0, 0.0]), 1.0)
    assert told[0] == pytest.approx(share, abs=0.08)
    assert told.sum() == pytest.approx(1)


def test_a_weak_question_loses_probability() -> None:
    found = learn_calibration(cases(0.8), np.ones(1))
    assert found.least == pytest.approx(0.145, abs=0.001)
    scores = np.array([9.0, 1.0])
    assert found.probabilities(scores, found.least / 4).sum() == pytest.approx(0.25)
    assert found.probabilities(scores, 0.0).tolist() == [0, 0]
    assert found.known(1.0) == Calibration(least=0.0).known(0.0) == 1


def test_few_questions_teach_nothing() -> None:
    assert learn_calibration(cases(0.8, count=10), np.ones(1)) == Calibration()
