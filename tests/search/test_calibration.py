from __future__ import annotations

import numpy as np
import pytest

from matchloom.search.calibration import ENOUGH, WORDS, Calibration, learn_calibration, promised, signals_of
from matchloom.search.fusion import Cases


def cases(right_first: float, count: int = 200) -> Cases:
    """Questions with three answers, scored 2, 1 and 0; the first is right so often, else the others in turn."""
    features = np.tile(np.array([2.0, 1.0, 0.0])[None, :, None], (count, 1, 1))
    right = np.zeros((count, 3), dtype=bool)
    first = np.arange(count) < right_first * count
    right[first, 0] = True
    right[~first, 1 + np.arange(count)[~first] % 2] = True
    signals = np.stack([np.linspace(0.1, 1, count)] * 4, axis=1)
    return Cases(features, np.ones((count, 3), dtype=bool), right, np.ones(count), 1.0, signals)


def learnt(right_first: float, count: int = 200) -> Calibration:
    return learn_calibration(["centroid"], cases(right_first, count), np.ones(1), np.empty((0, 4)))


@pytest.mark.parametrize("share", [0.5, 0.6, 0.7])
def test_what_is_told_is_what_happens(share: float) -> None:
    assert np.mean(learnt(share, 2000).shown) == pytest.approx(share, abs=0.08)


def test_probabilities_add_up_to_what_is_answerable() -> None:
    found = learnt(0.7)
    told = found.probabilities(np.array([[2.0, 1.0, 0.0]]), np.array([0.8]))
    assert told.sum() == pytest.approx(0.8)
    assert found.probabilities(np.array([[9.0, 1.0]]), np.zeros(1)).tolist() == [[0, 0]]


def test_a_question_of_which_more_is_known_is_more_answerable_and_batches_change_no_bit() -> None:
    found = learnt(0.8)
    signals = np.stack([np.linspace(-1, 2, 9)] * 4, axis=1)
    together = found.answerable(signals)
    assert (np.diff(together) > 0).all()
    assert [found.answerable(signals[[n]])[0] for n in range(9)] == together.tolist()
    assert 0 < together[0] < together[-1] < 1


def test_few_questions_teach_nothing() -> None:
    assert learnt(0.8, count=ENOUGH - 1) == Calibration(WORDS.temperature, WORDS.raw)
    assert learnt(0.8, count=ENOUGH).shown


def test_questions_without_an_answer_move_the_weights() -> None:
    data = cases(0.8)
    without = np.full((60, 4), 0.05)
    pulled = learn_calibration(["centroid"], data, np.ones(1), without)
    plain = learn_calibration(["centroid"], data, np.ones(1), np.empty((0, 4)))
    assert pulled.weights != plain.weights
    assert pulled.answerable(without).max() < pulled.answerable(data.signals).mean()


def test_signals_take_the_best_of_what_entries_have() -> None:
    raw = np.array([[[0.2, np.nan, 0.5], [1.0, -3.0, np.nan]]])
    found = signals_of(["centroid", "svm"], np.array([1.0, 1.0]), raw, np.array([[4.0, 1.0, 2.0]]), np.array([0.7]))
    assert found.tolist() == [[2.0, 0.5, 1.0, 0.7]]
    empty = signals_of(["centroid"], np.ones(1), np.zeros((1, 1, 0)), np.zeros((1, 0)), np.array([0.7]))
    assert empty.tolist() == [[0, 0, 0, 0.7]]


def test_a_promised_precision_holds() -> None:
    shown = np.linspace(1, 0, 400)
    right = shown > 0.3
    threshold = promised(shown, right, wrong=0.1)
    assert threshold is not None
    assert right[shown >= threshold].mean() >= 0.9
    assert promised(shown[:5], right[:5], wrong=0.1) is None  # too few to promise anything
    assert promised(shown, np.zeros(400, dtype=bool), wrong=0.1) is None


def test_one_wrong_answer_near_the_top_does_not_end_a_promise() -> None:
    shown = np.linspace(1, 0, 1200)
    right = np.ones(1200, dtype=bool)
    right[36] = False
    right[975:] = False
    threshold = promised(shown, right, wrong=0.05)
    assert threshold is not None
    assert 0.94 <= right[shown >= threshold].mean() < 0.98


def test_a_promise_is_broken_no_more_often_than_its_risk_says() -> None:
    rng, shown = np.random.default_rng(0), np.linspace(1, 0, 800)
    broken = [promised(shown, rng.random(800) < 0.949, wrong=0.05) is not None for _ in range(400)]
    assert 0 < np.mean(broken) <= 0.1
