from __future__ import annotations

from math import inf

import numpy as np
import pytest

from matchloom.search.calibration import (
    ENCODER,
    ENOUGH,
    WORDS,
    Calibration,
    Prior,
    learn_calibration,
    promised,
    signals_of,
)
from matchloom.search.fusion import Cases
from matchloom.search.stored import calibration_of


def cases(right_first: float, count: int = 200) -> Cases:
    """Questions with three answers, scored 2, 1 and 0; the first is right so often, else the others in turn.

    Signals rise from question to question, and tell nothing of whether the first is right.
    """
    features = np.tile(np.array([2.0, 1.0, 0.0])[None, :, None], (count, 1, 1))
    right = np.zeros((count, 3), dtype=bool)
    first = np.arange(count) % 10 < round(right_first * 10)
    right[first, 0] = True
    right[~first, 1 + np.arange(count)[~first] % 2] = True
    signals = np.stack([np.linspace(0.1, 1, count)] * 5, axis=1)
    return Cases(features, np.ones((count, 3), dtype=bool), right, np.ones(count), 1.0, signals)


def learnt(right_first: float, count: int = 200) -> Calibration:
    return learn_calibration(["centroid"], cases(right_first, count), np.ones(1), np.empty((0, 5)))


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
    signals = np.stack([np.linspace(-1, 2, 9)] * 5, axis=1)
    together = found.answerable(signals)
    assert (np.diff(together) > 0).all()
    assert [found.answerable(signals[[n]])[0] for n in range(9)] == together.tolist()
    assert 0 < together[0] < together[-1] < 1


def test_few_questions_teach_nothing() -> None:
    assert learnt(0.8, count=ENOUGH - 1) == Calibration(WORDS.temperature(inf, 3), WORDS.raw)
    assert learnt(0.8, count=ENOUGH).shown


def test_questions_without_an_answer_move_the_weights() -> None:
    data = cases(0.8)
    without = np.full((60, 5), 0.05)
    pulled = learn_calibration(["centroid"], data, np.ones(1), without)
    plain = learn_calibration(["centroid"], data, np.ones(1), np.empty((0, 5)))
    assert pulled.weights != plain.weights
    assert pulled.answerable(without).max() < pulled.answerable(data.signals).mean()


def test_signals_take_the_best_of_what_entries_have() -> None:
    raw = np.array([[[0.2, np.nan, 0.5], [1.0, -3.0, np.nan]]])
    found = signals_of(["centroid", "svm"], np.array([1.0, 1.0]), raw, np.array([[4.0, 1.0, 2.0]]), np.array([0.7]))
    assert found.tolist() == [[2.0, 0.5, 1.0, 1.0, 0.7]]
    empty = signals_of(["centroid"], np.ones(1), np.zeros((1, 1, 0)), np.zeros((1, 0)), np.array([0.7]))
    assert empty.tolist() == [[0, 0, 0, 0, 0.7]]


def test_energy_knows_whether_a_regression_speaks_for_any_entry_at_all() -> None:
    raw = np.array([[[9.0, 1.0, 1.0]], [[1.0, -7.0, -7.0]]])  # equally sure of the first, but not equally loud
    found = signals_of(["joint"], np.ones(1), raw, np.zeros((2, 3)), np.zeros(2))
    assert found[0, 2] == pytest.approx(found[1, 2])
    assert found[:, 3].tolist() == pytest.approx([np.log(np.exp(row).sum()) for row in raw[:, 0]])


def test_left_out_questions_of_answers_with_two_move_the_temperature_less() -> None:
    data = cases(0.9, 400)
    moved = []
    for questions in (2, 50):
        found = learn_calibration(["centroid"], data, np.ones(1), np.empty((0, 5)), questions)
        moved.append(abs(np.log(found.temperature / WORDS.temperature(questions, 3))))
    assert moved[0] < moved[1]


@pytest.mark.parametrize("prior", [WORDS, ENCODER])
def test_temperatures_start_lower_where_answers_have_more_questions_and_higher_among_more_answers(prior: Prior) -> None:
    assert prior.temperature(2, 50) > prior.temperature(20, 50) > 0.3
    assert prior.temperature(5, 20) < prior.temperature(5, 200) < 6
    assert prior.temperature(inf, 10**6) == prior.temperature(500, 300)  # no farther than it was learnt


def test_what_is_nearly_always_right_may_be_shown_as_nearly_certain() -> None:
    """With one question in seven taken to have no answer nothing was shown as likelier than .93."""
    data = cases(1.0, 2000)
    data = data._replace(features=10 * data.features, signals=np.ones((2000, 5)))
    found = learn_calibration(["centroid"], data, np.ones(1), np.empty((0, 5)))
    assert np.mean(found.shown) == pytest.approx(0.95, abs=0.01)


def test_what_would_be_likely_if_half_of_all_questions_had_no_answer() -> None:
    found = learnt(0.8)
    assert found.even(1 - found.rate) == pytest.approx(0.5)
    assert [found.even(one) for one in (0.0, 1.0)] == [0, 1]


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


@pytest.mark.parametrize("mean", [[1.0, 0.5, 0.4, 0.9], [0.0] * 4])
def test_a_calibration_of_four_signals_opens_and_says_much_the_same(mean: list[float]) -> None:
    weights = [0.5, 0.3, 0.4, 0.6, 1.2]
    old = {
        "temperature": 2.0,
        "weights": weights,
        "mean": mean,
        "deviation": [1.0] * 4,
        "shown": [0.9],
        "right": [True],
    }
    found = calibration_of(old)
    assert found is not None
    assert (found.temperature, found.shown, found.rate) == (2.0, (0.9,), 0.05)
    covered = 0.9 if any(mean) else 0.8  # what the signal that is gone mostly was
    odds = 0.5 + np.log(0.95 / 0.05) + np.array([1.1, 0.6, 0.3, covered] - np.array(mean)) @ weights[1:]
    signals = np.array([[1.1, 0.6, 0.3, 99.0, 0.0]])
    assert found.answerable(signals)[0] == pytest.approx(1 / (1 + np.exp(-odds)))


def test_a_calibration_of_other_sizes_is_refused() -> None:
    plain = learnt(0.8)._asdict()
    assert calibration_of(dict(plain)) == learnt(0.8)
    with pytest.raises(ValueError, match="5 signals"):
        calibration_of({**plain, "mean": (0.0,) * 3})
