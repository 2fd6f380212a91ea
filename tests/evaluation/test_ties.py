from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.evaluation import measure, tie_bounds
from matchloom.evaluation.measures import CandidateLists
from matchloom.evaluation.ties import chance_of
from matchloom.types import Pair
from tests.drawing import examples

MEASURES = ("AP", "RR", "P@1", "P@3", "R@2", "nDCG", "nDCG@3", "Success@2", "Rprec")


@examples(60)
@given(rows=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.5, 0.5 + 1e-10])), min_size=1, max_size=5))
def test_equals_trying_every_order(rows: list[tuple[int, float]]) -> None:
    pairs = [Pair("q", f"t{i}", label) for i, (label, _) in enumerate(rows)]
    scores = [score for _, score in rows]
    single = np.float32(scores)
    tried = []
    for order in permutations(range(len(rows))):
        if all(single[a] >= single[b] for a, b in pairwise(order)):
            distinct = np.empty(len(rows))
            distinct[list(order)] = -np.arange(len(rows))
            tried.append(measure(pairs, distinct, MEASURES).values)
    bounds = tie_bounds(pairs, scores, MEASURES)
    own = measure(pairs, scores, MEASURES).values
    for name in MEASURES:
        assert bounds.low.values[name] == pytest.approx(min(values[name] for values in tried))
        assert bounds.high.values[name] == pytest.approx(max(values[name] for values in tried))
        assert bounds.low.values[name] - 1e-9 <= own[name] <= bounds.high.values[name] + 1e-9
    assert bounds.tied_queries == (len(tried) > 1)


def test_per_query_and_aggregate() -> None:
    pairs = [Pair("a", "x", 1), Pair("a", "y", 0), Pair("b", "x", 1), Pair("b", "y", 0)]
    bounds = tie_bounds(pairs, [1, 1, 2, 1], ["RR"])
    by_query = dict(zip(bounds.low.queries, bounds.low.per_query["RR"].tolist(), strict=True))
    assert sorted(by_query.values()) == [0.5, 1.0]
    assert (bounds.low.values["RR"], bounds.high.values["RR"]) == (0.75, 1.0)
    assert bounds.matter("RR")
    assert bounds.tied_queries == 1
    assert not tie_bounds(pairs, [4, 3, 2, 1], ["RR"]).matter("RR")


def chance_lists(count: int) -> CandidateLists:
    pairs = [Pair(f"q{i // 5}", f"t{i}", float(i % 5 == 0)) for i in range(5 * count)]
    return CandidateLists.of(pairs, ["P@1", "RR"])


def test_chance_on_five_candidates() -> None:
    chance = chance_of(chance_lists(1000), np.zeros(5000), seed=0)
    assert chance.mean.values["P@1"] == pytest.approx(0.2, abs=0.01)
    assert chance.mean.values["RR"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5, abs=0.008)
    assert chance.variances["P@1"].mean() == pytest.approx(0.2 * 0.8, abs=0.01)


def test_p_is_uniform_at_chance_and_small_above() -> None:
    lists = chance_lists(200)
    chance = chance_of(lists, np.zeros(1000), seed=1)
    generator = np.random.default_rng(2)
    p = [chance.p_above(lists.measure(generator.random(1000)), "RR") for _ in range(300)]
    assert 0.4 < np.mean(p) < 0.6
    assert np.mean(np.array(p) < 0.01) < 0.04
    better = lists.measure(generator.random(1000) + 0.25 * lists.labels)
    assert chance.p_above(better, "RR") < 0.01 < chance.p_below(better, "RR")
    worse = lists.measure(generator.random(1000) - 0.25 * lists.labels)
    assert chance.p_below(worse, "RR") < 0.01 < chance.p_above(worse, "RR")


def test_random_orders_keep_to_the_scores_and_the_seed() -> None:
    lists = chance_lists(50)
    fixed = chance_of(lists, np.arange(250), seed=0)
    assert max(variances.max() for variances in fixed.variances.values()) < 1e-20
    assert fixed.mean.values == pytest.approx(lists.measure(np.arange(250)).values)
    first, second = (chance_of(lists, np.zeros(250), seed=s).mean.values for s in (3, 4))
    assert first == chance_of(lists, np.zeros(250), seed=3).mean.values != second
