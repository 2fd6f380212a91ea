from __future__ import annotations

import pytest

from matchloom.ranking.answers import Answers
from matchloom.ranking.baselines import BASELINES
from matchloom.types import Pair, Scorer
from tests.ranking.collections import ENGLISH, pairs_of


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_ranks_and_scores_alike(name: str) -> None:
    answers = Answers.of(pairs_of(ENGLISH))
    baseline = BASELINES[name](answers)
    assert isinstance(baseline, Scorer)
    assert baseline.name == name
    question = "how do I close an issue with a commit?"
    ranked = baseline.rank(question, top=None)
    assert ranked[0].text.startswith("Press the close button")
    assert sorted(answer.index for answer in ranked) == list(range(6))
    assert all(answers.ids[answer.index] == answer.id for answer in ranked)
    scores = baseline.score([Pair(question, answer.text) for answer in ranked] + [Pair(question, "elsewhere")])
    assert scores[:-1].tolist() == pytest.approx([answer.score for answer in ranked])
    assert scores[-1] == scores.min()
    assert baseline.search([question], top=2) == [ranked[:2]]


def test_two_answers_are_two_classes() -> None:
    answers = Answers.of([Pair("weave", "a loom"), Pair("grind", "a mill")])
    assert BASELINES["linear_classifier"](answers).rank("weaving")[0].text == "a loom"
    assert len(BASELINES["linear_classifier"](Answers.of([Pair("weave", "a loom")])).rank("weave")) == 1
