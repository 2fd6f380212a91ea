from __future__ import annotations

import numpy as np
import pytest

from matchloom.evaluation import measure
from matchloom.lexical import RandomScorer
from matchloom.types import Pair


def test_uniform_and_unlike_from_seed_to_seed() -> None:
    pairs = [Pair(f"q{i}", f"t{i}") for i in range(4000)]
    first, second = RandomScorer(1).score(pairs), RandomScorer(2).score(pairs)
    counts = np.histogram(first, bins=10, range=(0, 1))[0]
    assert counts.sum() == 4000
    assert ((counts - 400) ** 2 / 400).sum() < 27.9  # chi square, 9 degrees, p = .001
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.05
    assert RandomScorer(1).score(pairs).tolist() == first.tolist()


def test_ids_tell_equal_texts_apart() -> None:
    pairs = [Pair("q", "t", query_id="1", text_id=str(i)) for i in range(50)]
    assert len(set(RandomScorer(0).score(pairs).tolist())) == 50


@pytest.mark.slow
def test_five_candidates_give_the_published_chance() -> None:
    pairs = [Pair(f"q{i // 5}", f"t{i}", float(i % 5 == 0)) for i in range(50_000)]
    values = measure(pairs, RandomScorer(0).score(pairs), ["P@1", "RR"]).values
    # 10,000 lists: standard errors .004 and .0029
    assert abs(values["P@1"] - 0.200) < 0.014
    assert abs(values["RR"] - 0.4567) < 0.010
