"""The explanation that BM25 and overlap share: equal words meet, and each meeting has its part of the score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matchloom.types import MatchloomError, Signal, Trace

_MOST_CELLS = 50_000_000


def empty_grid(left: int, right: int) -> NDArray[np.float32]:
    """A map of zeros, (1, left, right), unless it would not fit in memory."""
    if left * right > _MOST_CELLS:
        raise MatchloomError(
            f"an explanation of {left:,} by {right:,} words is too large to show; cut the texts (max_words)"
        )
    return np.zeros((1, left, right), np.float32)


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
    signals = []
    for i, term in enumerate(left):
        found = places.get(term, []) if term is not None else []
        for j in found:
            grid[0, i, j] = strengths[i]
            signals.append(Signal(i, j, 0, strengths[i], contributions[i] / len(found)))
    return Trace(score, signals, score - sum(signal.contribution for signal in signals), grid, ["exact match"])
