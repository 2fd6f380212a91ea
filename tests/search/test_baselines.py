from __future__ import annotations

import pytest

from matchloom.explanation import explain
from matchloom.lexical import fit_scorer
from matchloom.search.baselines import BASELINES, LinearClassifier
from matchloom.search.entries import Entries
from matchloom.search.features.linear import LinearFeature, LinearWeights, machines_once
from matchloom.search.learning import Settings, learn
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair, Scorer
from tests.search.collections import ENGLISH, pairs_of


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_ranks_and_scores_alike(name: str) -> None:
    entries = Entries.of(pairs_of(ENGLISH))
    baseline = BASELINES[name](entries)
    assert isinstance(baseline, Scorer)
    assert baseline.name == name
    question = "how do I close an issue with a commit?"
    ranked = baseline.search(question, top=None)
    assert ranked[0].text.startswith("Press the close button")
    assert sorted(answer.index for answer in ranked) == list(range(6))
    assert all(entries.ids[answer.index or 0] == answer.id for answer in ranked)
    scores = baseline.score([Pair(question, answer.text) for answer in ranked] + [Pair(question, "elsewhere")])
    assert scores[:-1].tolist() == pytest.approx([answer.score for answer in ranked])
    assert scores[-1] == scores.min()
    assert baseline.search(question, top=2) == ranked[:2]
    assert baseline.best(["", question], 2)[1] == [answer.id for answer in ranked[:2]]


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("question", ["closing issues by a comit, commit", "ξψω"])
def test_every_baseline_says_why(name: str, question: str) -> None:
    baseline = BASELINES[name](Entries.of(pairs_of(ENGLISH)))
    elsewhere = [] if name == "trans_lm" else ["a text from elsewhere that closes an issue"]  # it scores any text
    for text in (*baseline.entries.texts, *elsewhere):
        found = explain(baseline, question, text)
        assert found.trace.score == pytest.approx(float(baseline.score([Pair(question, text)])[0]), abs=1e-5)
        if name in ("nearest_question", "linear_classifier"):
            assert abs(found.trace.residual) < 1e-4
    shown = explain(baseline, "closing issues by a comit, commit", ENGLISH[5][1])
    strongest = max(shown.trace.signals, key=lambda signal: signal.contribution)
    assert shown.text[strongest.right] in {"closing", "close", "issue", "issues", "commit"}
    if name in ("nearest_question", "linear_classifier"):
        assert shown.text[:2] == ["closing", "issues"]  # the known question comes first
        assert baseline.search("closing issues by a comit, commit")[0].question == "closing issues by commit"
        assert all(one.question is None for one in baseline.search("ξψω"))


def test_two_answers_are_two_classes() -> None:
    entries = Entries.of([Pair("weave", "a loom"), Pair("grind", "a mill")])
    assert BASELINES["linear_classifier"](entries).search("weaving")[0].text == "a loom"
    assert len(BASELINES["linear_classifier"](Entries.of([Pair("weave", "a loom")])).search("weave")) == 1


def test_bm25_stemmed_is_one_score_wherever_it_is_asked_for() -> None:
    texts = ["The loom weaves cloth and cloth.", "A mill grinds corn.", "Weave the cloth on a loom; weaving is slow."]
    entries = Entries.of([Pair(f"q{n}", text) for n, text in enumerate(texts)])
    pairs = [Pair(query, text) for query in ("weave cloth weave", "loom loom mill", "corn") for text in texts]
    by_name = fit_scorer("bm25_stemmed", texts).score(pairs)
    assert by_name.tolist() == BASELINES["bm25_stemmed"](entries).score(pairs).tolist()
    once = fit_scorer("bm25_stemmed", texts).score([Pair("weave", texts[0]), Pair("cloth", texts[0])])
    assert by_name[0] == pytest.approx(2 * once[0] + once[1])  # a word that is asked twice counts twice


def test_a_machine_is_learnt_once_as_a_baseline_and_as_a_feature() -> None:
    entries = Entries.of(pairs_of(ENGLISH))

    def both() -> tuple[LinearWeights, LinearWeights]:
        baseline = LinearClassifier(entries)
        features = learn(entries, Settings(Tokenizer())).segment.features
        feature = next(one for one in features if isinstance(one, LinearFeature) and one.name == "svm")
        return baseline._weights, feature.weights

    with machines_once():
        baseline, feature = both()
    assert baseline is feature
    apart = both()
    assert apart[0] is not apart[1]
    assert all(one.weights.tolist() == feature.weights.tolist() for one in apart)
