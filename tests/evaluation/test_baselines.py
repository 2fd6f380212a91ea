from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from matchloom.evaluation.baselines import Surroundings, shuffle_queries, surroundings
from matchloom.evaluation.measures import CandidateLists
from matchloom.lexical import BM25, fit_scorer
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors
from matchloom.types import Pair, Scores

SPACE = Tokenizer("whitespace")


def five_candidates(*, lists: int = 60, positive_words: int = 6, seed: int = 0) -> list[Pair]:
    """Lists whose true text shares words with the query; texts have 6 words, the true one `positive_words`."""
    generator = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(200)]
    pairs = []
    for i in range(lists):
        query = generator.choice(words, 4, replace=False)
        for j in range(5):
            length = positive_words if j == 0 else 6
            drawn = generator.choice(words, length, replace=False)
            if j == 0:
                drawn[: 2 + i % 2] = query[: 2 + i % 2]
            pairs.append(Pair(" ".join(query), " ".join(generator.permutation(drawn)), float(j == 0), query_id=str(i)))
    return [pairs[i] for i in generator.permutation(len(pairs))]


def surround(pairs: Sequence[Pair], **given: object) -> Surroundings:
    return surroundings(pairs, CandidateLists.of(pairs, ["P@1", "RR"]), tokenizer=SPACE, **given)  # type: ignore[arg-type]


def test_baselines_equal_their_scorers() -> None:
    pairs = five_candidates()
    words = sorted({word for pair in pairs for word in pair.text.split()})
    vectors = WordVectors(words, np.random.default_rng(0).normal(size=(len(words), 5)).astype(np.float32))
    baselines = {baseline.name: baseline.measured.values for baseline in surround(pairs, vectors=vectors).baselines}
    assert list(baselines) == ["random", "input order", "overlap", "bm25", "bm25_stemmed", "soft_coverage"]
    assert baselines["random"]["P@1"] == pytest.approx(0.2, abs=0.03)
    lists = CandidateLists.of(pairs, ["P@1", "RR"])
    texts = {pair.text for pair in pairs}
    for name in ("overlap", "bm25", "bm25_stemmed", "soft_coverage"):
        scorer = fit_scorer(name, texts, tokenizer=SPACE, vectors=vectors)
        assert baselines[name] == lists.measure(scorer.score(pairs)).values
        assert baselines[name]["P@1"] > 0.6


def test_without_vectors_no_soft_coverage_and_without_a_scorer_no_shuffle() -> None:
    beside = surround(five_candidates(lists=3))
    assert "soft_coverage" not in [baseline.name for baseline in beside.baselines]
    assert [probe.name for probe in beside.probes] == ["text length"]


def test_statistics_come_from_the_collection_when_there_is_one() -> None:
    pairs = five_candidates()
    beside = surround(pairs, collection=["w1 w2", "w1 w3", "w1 w3"])
    expected = BM25.fit(["w1 w2", "w1 w3"], tokenizer=SPACE).score(pairs)
    bm25 = next(baseline for baseline in beside.baselines if baseline.name == "bm25")
    assert bm25.measured.values == CandidateLists.of(pairs, ["P@1", "RR"]).measure(expected).values


def test_probes_stay_at_chance_on_fair_lists() -> None:
    pairs = five_candidates()
    beside = surround(pairs, scorer=BM25.fit([pair.text for pair in pairs], tokenizer=SPACE))
    assert [probe.name for probe in beside.probes] == ["queries shuffled", "text length"]
    for probe in beside.probes:
        assert not probe.leaks
        assert probe.measured.values["P@1"] < 0.4
    assert not beside.order_follows_labels


@pytest.mark.parametrize(("words", "note"), [(5, "shorter first"), (8, "longer first")])
def test_length_gives_the_answer_away(words: int, note: str) -> None:
    probe = surround(five_candidates(positive_words=words)).probes[0]
    assert (probe.note, probe.measured.values["P@1"], probe.leaks) == (note, 1.0, True)


def test_a_scorer_that_never_looks_at_the_query_is_caught() -> None:
    class KnowsTheAnswers:
        name = "cheat"

        def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
            return np.array([pair.label for pair in pairs], np.float32)

    probe = surround(five_candidates(lists=20), scorer=KnowsTheAnswers()).probes[0]
    assert (probe.name, probe.measured.values["P@1"], probe.leaks) == ("queries shuffled", 1.0, True)


def test_input_order_that_follows_labels_is_seen() -> None:
    pairs = sorted(five_candidates(), key=lambda pair: -(pair.label or 0))
    beside = surround(pairs)
    assert beside.baselines[1].measured.values == {"P@1": 1.0, "RR": 1.0}
    assert beside.order_follows_labels


@pytest.mark.parametrize("lists", [1, 9])
def test_a_few_lists_show_no_leak(lists: int) -> None:
    pairs = sorted(five_candidates(lists=lists, positive_words=5), key=lambda pair: -(pair.label or 0))
    beside = surround(pairs)
    assert beside.probes[0].measured.values["P@1"] == 1.0
    assert not beside.probes[0].telling
    assert not beside.probes[0].leaks
    assert not beside.order_follows_labels


def test_shuffled_queries_are_all_others() -> None:
    pairs = [*five_candidates(lists=9), Pair("w1 w2", "x", 1, query_id="a"), Pair("w1 w2", "x", 1, query_id="b")]
    for seed in range(20):
        shuffled = shuffle_queries(pairs, seed=seed)
        assert shuffled is not None
        assert all(new.query != old.query for new, old in zip(shuffled, pairs, strict=True))
        assert {pair.query for pair in shuffled} == {pair.query for pair in pairs}
        assert [pair[1:] for pair in shuffled] == [pair[1:] for pair in pairs]
    assert shuffle_queries(pairs, seed=1) == shuffle_queries(pairs[::-1], seed=1)[::-1]  # type: ignore[index]
    assert shuffle_queries(pairs[-2:], seed=0) is None
