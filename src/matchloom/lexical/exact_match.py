"""The explanation that BM25 and overlap share: equal words meet, and each meeting has its part of the score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matchloom.traces import empty_grid, grid_trace
from matchloom.types import Trace


def exact_match_trace(
    left: Sequence[str | None],
    right: Sequence[str | None],
    strengths: Sequence[float],
    contributions: Sequence[float],
    score: float,
) -> Trace:
    """Signals where a query term equals a text term; None marks words that take no part.

    `strengths` and `contributions` belong to the query terms. A term that the text holds several times has its
    contribution divided equally among the places.
    """
    places: dict[str, list[int]] = {}
    for j, term in enumerate(right):
        if term is not None:
            places.setdefault(term, []).append(j)
    grid = empty_grid(len(left), len(right))
    parts = np.zeros(grid.shape)
    for i, term in enumerate(left):
        found = places.get(term, []) if term is not None else []
        grid[0, i, found] = strengths[i]
        parts[0, i, found] = contributions[i] / max(1, len(found))
    return grid_trace(score, grid, parts, ["exact match"])
