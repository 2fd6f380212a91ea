"""Is one run better than another, or only luckier? The paired randomisation test, and the interval of a mean."""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from matchloom.evaluation.measures import Measured, Numbers
from matchloom.types import MatchloomError

_BLOCK = 4_000_000  # signs in memory at a time


class Difference(NamedTuple):
    """The mean of the first run less that of the second, and the chance of a difference as large if they were equal."""

    difference: float
    p: float


def compare_runs(first: Measured, second: Measured, *, draws: int = 10_000, seed: int = 0) -> dict[str, Difference]:
    """Compare two runs over the same queries, measure by measure."""
    if first.queries != second.queries:
        raise MatchloomError(
            f"two runs are compared over the same queries; the first has {len(first.queries)}, the second "
            f"{len(second.queries)}, shared {len({*first.queries} & {*second.queries})}",
            code="mismatch",
        )
    result = {}
    for name in first.per_query.keys() & second.per_query.keys():
        a, b = first.per_query[name], second.per_query[name]
        defined = ~(np.isnan(a) | np.isnan(b))
        result[name] = Difference(
            float((a - b)[defined].mean()) if defined.any() else 0.0,
            paired_randomisation(a[defined], b[defined], draws=draws, seed=seed),
        )
    return {name: result[name] for name in first.per_query if name in result}


def paired_randomisation(a: ArrayLike, b: ArrayLike, *, draws: int = 10_000, seed: int = 0) -> float:
    """Two-sided p of the difference of two runs' values, query by query.

    If the runs were equally good, each query's difference could as well have had the other sign: p is the share of
    sign flips with a total at least as far from 0. With few differing queries all flips are tried, else `draws` of
    them are drawn, and the observed one is counted in.

    >>> paired_randomisation([1, 1, 1, 1], [0, 0, 0, 0])
    0.125
    """
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise MatchloomError(
            f"paired values are two rows of one length, found shapes {first.shape} and {second.shape}", code="mismatch"
        )
    difference: Numbers = first - second
    difference = difference[difference != 0]  # flipping a zero changes nothing
    observed = abs(difference.sum()) - 1e-12 * np.abs(difference).sum()  # rounding must not lose the equal ones
    if 2 ** len(difference) <= draws:
        signs = np.array(list(product((1.0, -1.0), repeat=len(difference))))
        return float(np.mean(np.abs(signs @ difference) >= observed))
    generator = np.random.default_rng(seed)
    as_far = 0
    block = max(1, _BLOCK // len(difference))
    for start in range(0, draws, block):
        flipped = generator.integers(0, 256, (min(block, draws - start), -(-len(difference) // 8)), np.uint8)
        flips = np.unpackbits(flipped, axis=1, count=len(difference)).astype(np.float64)
        as_far += int(np.sum(np.abs(difference.sum() - 2 * (flips @ difference)) >= observed))
    return (as_far + 1) / (draws + 1)


def sign_test(won: int, lost: int) -> float:
    """Two-sided p of so many wins and losses if either were as likely: the exact binomial test.

    >>> sign_test(5, 0), sign_test(3, 3)
    (0.0625, 1.0)
    """
    count, fewer = won + lost, min(won, lost)
    as_far: int = sum(math.comb(count, n) for n in range(fewer + 1))
    return min(1.0, float(2 * as_far / 2**count))  # whole numbers until here: no tail is lost to rounding


def interval(mean: float, count: int) -> tuple[float, float]:
    """The 95% interval of a mean of `count` values between 0 and 1, by Wilson's formula.

    It is that of a proportion. Other means of such values vary less, so that theirs is no wider.
    """
    z2 = 1.959964**2
    middle = (mean + z2 / (2 * count)) / (1 + z2 / count)
    half = math.sqrt(z2 * (mean * (1 - mean) / count + z2 / (4 * count * count))) / (1 + z2 / count)
    return max(0.0, middle - half), min(1.0, middle + half)
