from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from matchloom.evaluation import compare_runs, measure, paired_randomisation
from matchloom.types import Pair
from tests.refusing import refused


def exhaustive(a: np.ndarray, b: np.ndarray) -> float:
    observed = abs(sum(a - b))
    totals = [
        abs(sum(sign * d for sign, d in zip(signs, a - b, strict=True))) for signs in product((1, -1), repeat=len(a))
    ]
    return float(np.mean([total >= observed - 1e-12 for total in totals]))


@pytest.mark.parametrize("seed", range(5))
def test_equals_all_sign_flips(seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = generator.random(11) + 0.1, generator.random(11)
    b[0] = a[0]
    assert paired_randomisation(a, b) == pytest.approx(exhaustive(a, b))
    drawn = paired_randomisation(a, b, draws=500, seed=seed)  # too few for all 1,024 flips
    assert drawn == pytest.approx(exhaustive(a, b), abs=0.08)
    assert drawn == paired_randomisation(a, b, draws=500, seed=seed)
    assert drawn == paired_randomisation(b, a, draws=500, seed=seed)


def test_many_queries() -> None:
    generator = np.random.default_rng(0)
    a = generator.random(3000)
    assert paired_randomisation(a, a + generator.normal(0, 0.1, 3000)) > 0.01
    assert paired_randomisation(a, a + generator.normal(0.02, 0.1, 3000)) == pytest.approx(1 / 10_001)
    assert paired_randomisation(a, a) == 1.0


def test_false_alarms_are_as_rare_as_they_claim() -> None:
    generator = np.random.default_rng(1)
    p = [paired_randomisation(*generator.random((2, 30)), draws=400, seed=i) for i in range(300)]
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09


def test_compare_runs() -> None:
    pairs = [Pair(f"q{i // 2}", f"t{i}", float(i % 2)) for i in range(12)]
    good, bad = measure(pairs, np.arange(12) % 2, ["AP", "P@1"]), measure(pairs, -(np.arange(12) % 2), ["P@1", "AP"])
    result = compare_runs(good, bad)
    assert list(result) == ["AP", "P@1"]
    assert result["AP"] == pytest.approx((0.5, 2 / 2**6))
    assert result["P@1"] == pytest.approx((1.0, 2 / 2**6))
    with refused("mismatch", "second", "6", "5"):
        compare_runs(good, measure(pairs[2:], np.arange(10)))
    with refused("mismatch", "length"):
        paired_randomisation([1.0], [1.0, 2.0])
