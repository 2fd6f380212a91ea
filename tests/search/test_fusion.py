from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.search.entries import Entries
from matchloom.search.fusion import (
    PRIOR_OF_MANY,
    Cases,
    Fusion,
    compare_weights,
    learn_fusion,
    learn_weights,
    leave_one_out_figures,
    ranks,
    scale,
)
from matchloom.search.learning import _counted
from matchloom.types import Pair
from tests.drawing import examples
from tests.search.collections import many

NAMES = ("ridge", "bm25_doc", "centroid")
PRIORS = {**PRIOR_OF_MANY, "ridge": 0.7}


def made(quality: tuple[float, ...], questions: int = 200, answers: int = 12, seed: int = 0) -> Cases:
    """Features that lifts the right answer by so many deviations."""
    draws = np.random.default_rng(seed)
    features = draws.normal(size=(questions, answers, len(quality)))
    gold = draws.integers(answers, size=questions)
    right = np.arange(answers) == gold[:, None]
    features[right] += quality
    mean, spread = scale(features.transpose(0, 2, 1)) if questions else (0.0, 1.0)
    if questions:
        features = (features - mean[:, None]) / spread[:, None]
    return Cases(features, np.ones(right.shape, dtype=bool), right, np.ones(questions))


@examples(25)
@given(st.tuples(*[st.floats(-2, 3)] * 3), st.integers(0, 40), st.integers(0, 1000))
def test_weights_are_never_negative(quality: tuple[float, ...], questions: int, seed: int) -> None:
    fusion = learn_fusion(NAMES, made(quality, questions, seed=seed), PRIORS)
    assert (fusion.weights >= 0).all()
    assert fusion.weights.any()


def test_good_features_weigh_more_than_bad() -> None:
    weights = learn_fusion(NAMES, made((2.0, 0.5, -1.0)), PRIORS).weights
    assert weights[0] > weights[1] > weights[2] == 0


def test_nothing_to_learn_from_leaves_the_prior() -> None:
    cases = made((2.0, 1.0, 1.0))._replace(counted=np.zeros(200))
    fusion = learn_fusion(NAMES, cases, PRIORS)
    assert fusion.weights.tolist() == [PRIORS[name] for name in NAMES]
    assert "prior" in fusion.why
    assert leave_one_out_figures(cases, fusion.weights) is None


def test_the_gradient_is_that_of_the_loss() -> None:
    """At the learnt weights no small step makes the loss smaller."""
    cases, prior = made((1.0, 0.7, 0.4), questions=60), np.ones(3)
    weights = learn_weights(cases, prior)

    def loss(w: np.ndarray) -> float:
        scores = cases.features @ w
        p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        return float(((1 - p[cases.positive] ** 0.7) / 0.7).sum() + 5 * ((w - prior) ** 2).sum())

    for step in np.eye(3) * 1e-2:
        assert loss(weights) < min(loss(weights + step), loss(weights - step))


def test_a_feature_that_beats_the_fusion_beyond_chance_is_used_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = made((4.0, 0.0, 0.0))
    stuck = np.array([0.2, 3.0, 3.0])  # as if the pull to a bad prior had won

    def learn(cases: Cases, prior: np.ndarray, pull: float = 10.0) -> np.ndarray:
        return stuck if len(prior) == 3 else learn_weights(cases, prior)

    monkeypatch.setattr("matchloom.search.fusion.learn_weights", learn)
    fusion = learn_fusion(NAMES, cases, PRIORS)
    assert (fusion.weights > 0).tolist() == [True, False, False]
    assert fusion.why.startswith("ridge alone: right on ")
    assert (ranks(cases, fusion.weights) == 1).mean() > (ranks(cases, stuck) == 1).mean() + 0.2


def test_what_texts_say_of_answers_with_two_questions_does_not_throw_the_fusion_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Held out, a question leaves its answer with one of two: what needs no question looks better than it is."""
    cases = made((2.0, 0.0, 0.0), questions=60)
    monkeypatch.setattr("matchloom.search.fusion.learn_weights", lambda cases, prior, pull=0: 0.3 + 0 * prior)
    many, two = (learn_fusion(NAMES, cases, PRIORS, questions=questions) for questions in (100, 2))
    assert many.why.startswith("ridge alone: right on ")
    assert "learnt" in two.why


def test_chance_does_not_throw_the_fusion_away() -> None:
    assert "learnt" in learn_fusion(NAMES, made((1.0, 1.0, 1.0), questions=12), PRIORS).why


def test_ranks_count_ties_by_index_and_candidates_that_are_not_there() -> None:
    features = np.array([[[1.0], [1.0], [0.5], [9.0]], [[1.0], [2.0], [2.0], [0.0]], [[1.0], [2.0], [3.0], [0.0]]])
    there = np.array([[True, True, True, False], [True] * 4, [True] * 4])
    right = np.array([[False, True, False, False], [True, True, False, False], [False] * 4])
    cases = Cases(features, there, right, np.array([1.0, 1.0, 2.0]))
    assert ranks(cases, np.ones(1)).tolist() == [2, 1, 0]
    figures = leave_one_out_figures(cases, np.ones(1))
    assert figures is not None
    assert figures == (3, 0.25, 0.375, 0.5)


def test_a_score_does_not_depend_on_other_entries() -> None:
    raw = np.random.default_rng(0).normal(size=(2, 3, 50))
    mean, spread = scale(raw)
    fusion = Fusion(NAMES, np.array([0.3, 0.7, 1.1]), "")
    whole = fusion.score(raw, mean, spread)
    assert [fusion.score(raw[:, :, [n]], mean, spread)[1, 0] for n in range(50)] == whole[1].tolist()
    assert [fusion.score(raw[[n]], mean[[n]], spread[[n]])[0].tolist() for n in range(2)] == whole.tolist()


def test_what_an_entry_lacks_is_counted_by_its_others() -> None:
    raw = np.random.default_rng(1).normal(size=(1, 3, 6))
    fusion = Fusion(NAMES, np.array([0.5, 0.7, 1.3]), "")
    whole = fusion.score(raw, *scale(raw))
    raw[0, 0, 4] = np.nan
    mean, spread = scale(raw)
    np.testing.assert_allclose(mean[0, 0], np.delete(raw[0, 0], 4).mean())
    np.testing.assert_allclose(spread[0, 0], np.delete(raw[0, 0], 4).std())
    found = fusion.score(raw, mean, spread)
    assert np.isfinite(found).all()
    z = (raw[0, 1:, 4] - mean[0, 1:]) / spread[0, 1:]
    assert found[0, 4] == pytest.approx((0.7 * z[0] + 1.3 * z[1]) * 2.5 / 2.0)
    raw[:, 0] = np.nan  # nobody has it
    assert np.isfinite(fusion.score(raw, *scale(raw))).all()
    assert whole.shape == found.shape


def test_new_weights_are_worse_only_beyond_chance() -> None:
    cases = made((4.0, 0.0, 0.0))
    good, bad = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    before, after, worse = compare_weights(cases, good, bad)
    assert before > after
    assert worse
    assert not compare_weights(cases, bad, good)[2]
    assert not compare_weights(cases, good, good)[2]
    few = Cases(*(one[:4] if isinstance(one, np.ndarray) else one for one in cases))
    assert not compare_weights(few, good, bad)[2]


def test_an_answer_with_several_questions_does_not_decide_where_it_is_an_exception() -> None:
    def counted(*pairs: Pair) -> list[float]:
        found: list[float] = _counted(Entries.of(pairs).known[1]).tolist()
        return found

    alone = [*many(20), *(Pair("", f"spare text {n}") for n in range(4))]
    repeated = [Pair("about thing0", many(1)[0].text, 1.0)]
    # As many as answers without a question, for one that has one.
    assert counted(*alone, *repeated) == [4 / 19] * 21
    assert counted(*alone, *many(20, questions=2)) == [1.0] * 40
    every = counted(*many(20), *repeated)  # no answer without one
    assert sorted(every) == [0.0] * 19 + [1.0, 1.0]
