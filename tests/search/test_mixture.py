from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.search.entries import Answers
from matchloom.search.fusion import (
    PRIOR,
    Cases,
    Mixture,
    learn_mixture,
    learn_weights,
    left_out_figures,
    ranks,
    scale,
)
from matchloom.search.memory import AskedCollection
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair
from tests.drawing import examples
from tests.search.collections import many

NAMES = ("ridge", "bm25_doc", "centroid")


def made(quality: tuple[float, ...], questions: int = 200, answers: int = 12, seed: int = 0) -> Cases:
    """Evidence that lifts the right answer by so many deviations."""
    draws = np.random.default_rng(seed)
    evidence = draws.normal(size=(questions, answers, len(quality)))
    gold = draws.integers(answers, size=questions)
    right = np.arange(answers) == gold[:, None]
    evidence[right] += quality
    for n in range(questions):
        mean, spread = scale(evidence[n])
        evidence[n] = (evidence[n] - mean) / spread
    return Cases(evidence, np.ones(right.shape, dtype=bool), right, np.ones(questions))


@examples(25)
@given(st.tuples(*[st.floats(-2, 3)] * 3), st.integers(0, 40), st.integers(0, 1000))
def test_weights_are_never_negative(quality: tuple[float, ...], questions: int, seed: int) -> None:
    mixture = learn_mixture(NAMES, made(quality, questions, seed=seed))
    assert (mixture.weights >= 0).all()
    assert mixture.weights.any()


def test_good_evidence_weighs_more_than_bad() -> None:
    weights = learn_mixture(NAMES, made((2.0, 0.5, -1.0))).weights
    assert weights[0] > weights[1] > weights[2] == 0


def test_nothing_to_learn_from_leaves_the_prior() -> None:
    cases = made((2.0, 1.0, 1.0))._replace(counted=np.zeros(200))
    mixture = learn_mixture(NAMES, cases)
    assert mixture.weights.tolist() == [PRIOR[name] for name in NAMES]
    assert "prior" in mixture.why
    assert left_out_figures(cases, mixture.weights) is None


def test_the_gradient_is_that_of_the_loss() -> None:
    """At the learnt weights no small step makes the loss smaller."""
    cases, prior = made((1.0, 0.7, 0.4), questions=60), np.ones(3)
    weights = learn_weights(cases, prior)

    def loss(w: np.ndarray) -> float:
        scores = cases.evidence @ w
        p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        return float(((1 - p[cases.right] ** 0.7) / 0.7).sum() + 5 * ((w - prior) ** 2).sum())

    for step in np.eye(3) * 1e-2:
        assert loss(weights) < min(loss(weights + step), loss(weights - step))


def test_a_piece_that_beats_the_mixture_beyond_chance_is_used_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = made((4.0, 0.0, 0.0))
    stuck = np.array([0.2, 3.0, 3.0])  # as if the pull to a bad prior had won

    def learn(cases: Cases, prior: np.ndarray) -> np.ndarray:
        return stuck if len(prior) == 3 else learn_weights(cases, prior)

    monkeypatch.setattr("matchloom.search.fusion.learn_weights", learn)
    mixture = learn_mixture(NAMES, cases)
    assert (mixture.weights > 0).tolist() == [True, False, False]
    assert mixture.why.startswith("ridge alone: right on ")
    assert (ranks(cases, mixture.weights) == 1).mean() > (ranks(cases, stuck) == 1).mean() + 0.2


def test_chance_does_not_throw_the_mixture_away() -> None:
    assert "learnt" in learn_mixture(NAMES, made((1.0, 1.0, 1.0), questions=12)).why


def test_ranks_count_ties_by_index_and_candidates_that_are_not_there() -> None:
    evidence = np.array([[[1.0], [1.0], [0.5], [9.0]], [[1.0], [2.0], [2.0], [0.0]], [[1.0], [2.0], [3.0], [0.0]]])
    there = np.array([[True, True, True, False], [True] * 4, [True] * 4])
    right = np.array([[False, True, False, False], [True, True, False, False], [False] * 4])
    cases = Cases(evidence, there, right, np.array([1.0, 1.0, 2.0]))
    assert ranks(cases, np.ones(1)).tolist() == [2, 1, 0]
    figures = left_out_figures(cases, np.ones(1))
    assert figures is not None
    assert figures == (3, 0.25, 0.375, 0.5)


def test_a_score_does_not_depend_on_other_rows() -> None:
    raw = np.random.default_rng(0).normal(size=(50, 3))
    mean, spread = scale(raw)
    mixture = Mixture(NAMES, np.array([0.3, 0.7, 1.1]), "")
    whole = mixture.score(raw, mean, spread)
    assert [mixture.score(raw[[n]], mean, spread)[0] for n in range(50)] == whole.tolist()


def test_an_answer_with_several_questions_does_not_decide_where_it_is_an_exception() -> None:
    alone = [*many(20), *(Pair("", f"spare text {n}") for n in range(4))]
    repeated = [Pair("about thing0", many(1)[0].text, 1.0)]
    counted = AskedCollection(Answers.of([*alone, *repeated]).sorted(), Tokenizer()).counted
    assert counted.tolist() == [4 / 19] * 21  # as many as answers without a question, for one that has one
    counted = AskedCollection(Answers.of([*alone, *many(20, questions=2)]).sorted(), Tokenizer()).counted
    assert counted.tolist() == [1.0] * 40
    every = AskedCollection(Answers.of([*many(20), *repeated]).sorted(), Tokenizer()).counted  # no answer without one
    assert sorted(every.tolist()) == [0.0] * 19 + [1.0, 1.0]
