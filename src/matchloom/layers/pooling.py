"""k-max pooling over the valid cells of an interaction grid."""

from __future__ import annotations

import torch
from torch import Tensor


def k_max(grid: Tensor, cells: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each channel in descending order, and their flat places l * R + r.

    grid (B, C, L, R), cells (B, L, R) True where valid -> values (B, C, k), places (B, C, k). Where a pair has fewer
    than k valid cells the missing values are 0 and their places -1.
    """
    L, R = grid.shape[2:]
    grid = grid.masked_fill(~cells[:, None], -torch.inf)
    # The k largest cells lie in the k columns with the largest maxima: a cell outside them is no larger than k others.
    # Two small selections replace one over all L * R cells.
    columns = grid.amax(2).topk(min(k, R), dim=2).indices  # (B, C, K)
    candidates = grid.gather(3, columns[:, :, None, :].expand(-1, -1, L, -1))  # (B, C, L, K)
    values, inside = candidates.flatten(2).topk(min(k, L * columns.shape[2]), dim=2)
    places = inside // columns.shape[2] * R + columns.gather(2, inside % columns.shape[2])
    missing = values == -torch.inf
    values, places = values.masked_fill(missing, 0.0), places.masked_fill(missing, -1)
    short = k - values.shape[2]
    if short > 0:
        values = torch.nn.functional.pad(values, (0, short))
        places = torch.nn.functional.pad(places, (0, short), value=-1)
    return values, places
