"""From a map and what its cells contributed to a trace: written once, for scorers with and without a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from matchloom.types import Component, MatchloomError, Signal, Trace

if TYPE_CHECKING:
    from torch import Tensor

MOST_CELLS = 50_000_000


def empty_grid(left: int, right: int) -> NDArray[np.float32]:
    """A map of zeros, (1, left, right), unless it would not fit in memory."""
    if left * right > MOST_CELLS:
        raise MatchloomError(
            f"an explanation of {left:,} by {right:,} words is too large to show; cut the texts (max_words)",
            code="too_large",
        )
    return np.zeros((1, left, right), np.float32)


def grid_trace(
    score: float,
    grid: NDArray[Any] | Tensor,
    contributions: NDArray[Any] | Tensor,
    channels: Sequence[str],
    components: Sequence[Component] = (),
) -> Trace:
    """The trace of a score: a signal where a cell contributed, and as residual what nothing accounts for.

    `grid` and `contributions` are (C, L, R), arrays or tensors, without padding; `channels` are C names. The map
    is copied, so that a trace does not change with what it was made from.
    """
    values, parts = _array(grid), _array(contributions)
    if values.shape != parts.shape or values.ndim != 3 or len(values) != len(channels):
        raise ValueError(
            f"expected a grid and contributions of one shape (channels, left, right) and a name for each channel, "
            f"found {values.shape}, {parts.shape} and {len(channels)} names"
        )
    cells = np.nonzero(parts)
    of_cells = parts[cells].tolist()
    places = zip(*(side.tolist() for side in cells), values[cells].tolist(), of_cells, strict=True)
    signals = [Signal(i, j, c, value, contribution) for c, i, j, value, contribution in places]
    residual = score - sum(of_cells) - sum(component.contribution for component in components)
    return Trace(score, signals, residual, values.copy(), list(channels), list(components))


def _array(values: NDArray[Any] | Tensor) -> NDArray[Any]:
    return values if isinstance(values, np.ndarray) else values.detach().cpu().numpy()
