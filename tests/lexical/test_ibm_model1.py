"""IBM Model 1 against the textbook's loops."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from matchloom.lexical.ibm_model1 import learn_translations

PAIRS = [([0, 1, 0], [2, 3, 3]), ([1, 4], [3, 5]), ([0], [2]), ([], [2, 5]), ([4, 1], []), ([0, 4], [2, 5, 6])]


def by_loops(pairs: list[tuple[list[int], list[int]]], iterations: int) -> dict[tuple[int, int], float]:
    """T(w|t), word by word and token by token, NULL being -1."""
    T: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(iterations):
        c: dict[tuple[int, int], float] = defaultdict(float)
        total: dict[int, float] = defaultdict(float)
        for question, answer in pairs:
            for w in question:
                denominator = sum(T[w, t] for t in [*answer, -1])
                for t in [*answer, -1]:
                    c[w, t] += T[w, t] / denominator
                    total[t] += T[w, t] / denominator
        T = defaultdict(float, {(w, t): value / total[t] for (w, t), value in c.items()})
    return T


def arrays(pairs: list[tuple[list[int], list[int]]]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return tuple([np.array(pair[n], dtype=np.int64) for pair in pairs] for n in (0, 1))  # type: ignore[return-value]


@pytest.mark.parametrize("iterations", [1, 2, 5, 20])
def test_equals_the_loops(iterations: int) -> None:
    found = learn_translations(*arrays(PAIRS), iterations=iterations, least=0.0)
    expected = {key: value for key, value in by_loops(PAIRS, iterations).items() if key[1] >= 0}
    assert {(w, t): p for w, t, p in zip(*(x.tolist() for x in found), strict=True)} == pytest.approx(
        expected, rel=1e-6
    )
    assert list(zip(found.w.tolist(), found.t.tolist(), strict=True)) == sorted(expected)


def test_each_text_word_shares_out_one_and_the_pruned_is_not_made_up_for() -> None:
    whole = learn_translations(*arrays(PAIRS), least=0.0)
    np.testing.assert_allclose(np.bincount(whole.t, whole.probability)[[2, 3, 5, 6]], 1.0, rtol=1e-6)
    pruned = learn_translations(*arrays(PAIRS), least=0.2)
    kept = whole.probability >= 0.2
    assert 0 < kept.sum() < len(kept)
    np.testing.assert_array_equal(pruned.probability, whole.probability[kept])


def test_the_right_words_are_found() -> None:
    pairs = [([w, 9], [10 + w, 19]) for w in range(5) for _ in range(3)]  # 9 stands everywhere, w with 10 + w only
    found = learn_translations(*arrays(pairs), iterations=20)
    for t in range(10, 15):
        rows = found.t == t
        assert found.w[rows][found.probability[rows].argmax()] == t - 10


def test_nothing_to_learn_from() -> None:
    assert all(len(x) == 0 for x in learn_translations([], []))
