"""What ties can do to a figure: the lowest and highest value over all orders of equal scores, and what chance gives."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from matchloom.basics.arrays import distinct
from matchloom.evaluation.measures import DEFAULT_MEASURES, CandidateLists, Measured, Numbers, as_float32
from matchloom.types import Pair

DRAWS = 20


@dataclass(frozen=True)
class TieBounds:
    """The lowest and highest a measure can be, by query and as a whole. Equal where ties do not matter."""

    low: Measured
    high: Measured
    tied_queries: int  # queries with tied scores, whether or not they matter

    def matter(self, name: str) -> bool:
        """True where the order of ties changes the measure."""
        return self.high.values[name] - self.low.values[name] > 1e-9


def tie_bounds(pairs: Iterable[Pair], scores: ArrayLike, measures: Iterable[str] = DEFAULT_MEASURES) -> TieBounds:
    """The lowest and highest value of each measure over all orders of tied scores.

    Exact for every measure that never falls when a better text moves up (AP, RR, P, R, nDCG, Success and most
    others): its extremes are the orders with the lowest and with the highest labels first in each tie.

    >>> bounds = tie_bounds([Pair("q", "good", 1), Pair("q", "bad", 0)], [0.5, 0.5], ["RR"])
    >>> bounds.low.values, bounds.high.values
    ({'RR': 0.5}, {'RR': 1.0})
    """
    return bounds_of(CandidateLists.of(pairs, measures), scores)


def bounds_of(lists: CandidateLists, scores: ArrayLike) -> TieBounds:
    """The tie bounds of lists that are already prepared."""
    low, high = lists.measure(scores, ties=-lists.labels), lists.measure(scores, ties=lists.labels)
    values = as_float32(scores, len(lists))
    order = np.lexsort((values, lists.codes))
    equal = (np.diff(values[order]) == 0) & (np.diff(lists.codes[order]) == 0)
    return TieBounds(low, high, len(distinct(lists.codes[order][1:][equal])))


@dataclass(frozen=True)
class Chance:
    """What random orders of tied scores give: the mean, and for each query the variance."""

    mean: Measured
    variances: dict[str, Numbers]
    draws: int

    def p_above(self, other: Measured, name: str) -> float:
        """One-sided p: how likely is a value as high as `other`'s, if its order were random?

        The sum over queries of independent draws is near to normal; its mean and variance are taken from the draws
        of each query.
        """
        return self._upper_tail(float(np.nansum(other.per_query[name] - self.mean.per_query[name])), name)

    def p_below(self, other: Measured, name: str) -> float:
        """One-sided p: how likely is a value as low as `other`'s, if its order were random?"""
        return self._upper_tail(float(np.nansum(self.mean.per_query[name] - other.per_query[name])), name)

    def _upper_tail(self, difference: float, name: str) -> float:
        if difference <= 1e-9:
            return 1.0
        spread = math.sqrt(float(np.nansum(self.variances[name])) * (1 + 1 / self.draws))
        return 0.5 * math.erfc(difference / spread / math.sqrt(2)) if spread else 0.0


def chance_of(lists: CandidateLists, scores: ArrayLike, *, seed: int, draws: int = DRAWS) -> Chance:
    """Measure `draws` random orders of the tied scores; with constant scores, of the whole lists."""
    generator = np.random.default_rng(seed)
    # Drawn over the places of the ids, so that the order of the input does not show.
    drawn = [lists.measure(scores, ties=generator.random(len(lists))[lists.places]) for _ in range(draws)]
    tables = {name: np.stack([each.per_query[name] for each in drawn]) for name in lists.measures}
    mean = Measured(
        lists.queries,
        {name: table.mean(axis=0) for name, table in tables.items()},
        {name: float(np.mean([each.values[name] for each in drawn])) for name in lists.measures},
    )
    return Chance(mean, {name: table.var(axis=0, ddof=1) for name, table in tables.items()}, draws)
