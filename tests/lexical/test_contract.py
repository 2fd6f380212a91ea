"""What every lexical scorer promises, whatever it computes."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from matchloom.lexical import LEXICAL, fit_scorer
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Explains, Pair, Scorer
from tests.drawing import examples
from tests.refusing import refused

TEXTS = [
    "the loom weaves cloth from thread",
    "a mill grinds corn and the miller weighs it",
    "weavers weave; who weaves the finest cloth ?",
    "corn",
    "",
    "thread thread thread",
]
QUERIES = ["who weaves cloth ?", "corn", "", "the thread of the thread", "zyzzyva", "the of and"]


@dataclass(frozen=True)
class Vectors:
    index: dict[str, int]
    matrix: NDArray[np.float32]


def some_vectors() -> Vectors:
    words = sorted({word for text in TEXTS for word in text.split()} - {"cloth"})
    return Vectors(
        {w: i for i, w in enumerate(words)}, np.random.default_rng(3).normal(size=(len(words), 8)).astype("f4")
    )


def make(name: str) -> Scorer:
    pairs = [Pair(query, text) for query, text in zip(QUERIES, TEXTS, strict=True)]
    return fit_scorer(name, TEXTS, tokenizer=Tokenizer("whitespace"), vectors=some_vectors(), pairs=pairs)


@pytest.fixture(params=sorted(LEXICAL))
def scorer(request: pytest.FixtureRequest) -> Scorer:
    return make(request.param)


def all_pairs() -> list[Pair]:
    return [Pair(query, text) for query in QUERIES for text in TEXTS]


def test_it_is_a_scorer_with_its_own_name(scorer: Scorer, request: pytest.FixtureRequest) -> None:
    assert isinstance(scorer, Scorer)
    assert scorer.name == request.node.callspec.params["scorer"]


def test_scores_are_finite_float32_one_for_each_pair(scorer: Scorer) -> None:
    scores = scorer.score(all_pairs())
    assert scores.dtype == np.float32
    assert scores.shape == (len(all_pairs()),)
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()
    assert scorer.score([]).shape == (0,)


def test_other_pairs_and_their_order_do_not_matter(scorer: Scorer) -> None:
    pairs = all_pairs()
    together = scorer.score(pairs)
    assert [scorer.score([pair])[0] for pair in pairs] == together.tolist()
    assert scorer.score(pairs[::-1])[::-1].tolist() == together.tolist()


@pytest.mark.parametrize("name", sorted(LEXICAL.keys() - {"random"}))  # whose draws follow the characters
@examples(10)
@given(seed=st.integers(0, 9999))
def test_order_mates_and_twins_change_no_bit(name: str, seed: int) -> None:
    draw = random.Random(seed)
    words = [*some_vectors().index, "cloth", "new", "newer", "the", "?"]
    texts = [" ".join(draw.choices(words, k=draw.randint(0, 12))) for _ in range(12)]
    right = [Pair(query, text) for query, text in zip(QUERIES, TEXTS, strict=True)]
    pairs = [Pair(draw.choice(texts), text) for text in texts for _ in range(3)]
    given_texts, shuffled = [*TEXTS, *texts[:4]], draw.sample(pairs, len(pairs))
    scorers = [
        fit_scorer(name, t, tokenizer=Tokenizer("whitespace"), vectors=some_vectors(), pairs=p)
        for t, p in ((given_texts, right), (given_texts[::-1], right[::-1]))
    ]
    known = dict(zip(pairs, scorers[0].score(pairs).tolist(), strict=True))
    for scorer in scorers:  # the second was fitted to the same texts in another order
        assert scorer.score(shuffled).tolist() == [known[pair] for pair in shuffled]
        assert [scorer.score([pair])[0] for pair in shuffled[:5]] == [known[pair] for pair in shuffled[:5]]
        twins = [Pair(f" {pair.query}", pair.text.replace(" ", "  ")) for pair in pairs]
        assert scorer.score(twins).tolist() == [known[pair] for pair in pairs]


def test_the_label_has_no_part_in_it(scorer: Scorer) -> None:
    pairs = all_pairs()
    assert scorer.score([p._replace(label=1.0) for p in pairs]).tolist() == scorer.score(pairs).tolist()


@pytest.mark.slow
def test_a_text_of_100000_words_is_scored(scorer: Scorer) -> None:
    long = " ".join(f"w{i % 5000}" for i in range(100_000)) + " cloth"
    assert np.isfinite(scorer.score([Pair("who weaves cloth ?", long), Pair(long, "cloth")])).all()


@pytest.mark.parametrize("name", sorted(LEXICAL.keys() - {"random"}))
@examples(30)
@given(
    query=st.lists(st.sampled_from([*some_vectors().index, "cloth", "new", "the", "?"]), max_size=6),
    text=st.lists(st.sampled_from([*some_vectors().index, "cloth", "new", "the", "?"]), max_size=6),
)
def test_shares_and_rest_add_up_to_the_score(name: str, query: list[str], text: list[str]) -> None:
    scorer = make(name)
    assert isinstance(scorer, Explains)
    left, right, trace = scorer.trace(" ".join(query), " ".join(text))
    assert (left, right) == (query, text)
    assert trace.score == scorer.score([Pair(" ".join(query), " ".join(text))])[0]
    assert sum(s.contribution for s in trace.signals) + trace.residual == pytest.approx(trace.score, abs=1e-12)
    # Nothing hidden but the rounding to float32 of the score, and of sums near 1 on the way where they cancel.
    assert abs(trace.residual) < 1e-6 * max(1.0, abs(trace.score))
    assert trace.grid.shape == (len(trace.channels), len(left), len(right)) == (1, len(query), len(text))
    for signal in trace.signals:
        assert trace.grid[signal.channel, signal.left, signal.right] == pytest.approx(signal.value)


def test_an_explanation_too_large_for_memory_is_refused() -> None:
    scorer = fit_scorer("bm25", TEXTS)
    long = "loom " * 10_000
    with refused("too_large", "10,000"):
        scorer.trace(long, long)  # type: ignore[attr-defined]


def test_unknown_names_and_missing_vectors_are_told() -> None:
    with refused("unknown_name", "'bm52'"):
        fit_scorer("bm52", TEXTS)
    with refused("no_data", "soft_coverage"):
        fit_scorer("soft_coverage", TEXTS)
    with refused("no_data", "trans_lm", "'matchloom trans-lm'"):
        fit_scorer("trans_lm", TEXTS)
    with refused("no_data", "texts"):
        fit_scorer("bm25", [])
