"""Match-SRNN word by word and cell by cell, straight from the paper, one pair at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tests.reference import mv_lstm, spatial_gru


def interactions(model, left: Sequence, right: Sequence) -> Tensor:
    """s_ij (c, m, n) of two texts: word ids, or for the indicator the words themselves."""
    if type(model.interaction).__name__ == "Indicator":
        same = [[[float(x == y)] for y in right] for x in left]
        return torch.tensor(same, dtype=model.head.weight.dtype).permute(2, 0, 1)
    U = model.encoder.embedding.weight
    if model.normalize:
        U = torch.stack([u / u.norm() if u.any() else u for u in U])
    grid = [[torch.stack(mv_lstm.interaction(model.interaction, U[x], U[y])) for y in right] for x in left]
    return torch.stack([torch.stack(row) for row in grid]).permute(2, 0, 1)


def match_srnn(model, left: Sequence, right: Sequence) -> Tensor:
    """The score of one pair."""
    s = interactions(model, left, right)
    ends = torch.cat([spatial_gru.end(scan, s) for scan in model.scans])
    return model.head.weight[0] @ ends + model.head.bias[0]


def path(z: list[list[Tensor]]) -> list[tuple[int, int]]:
    """Figure 4 (c): from (m, n) to the neighbour with the largest gate, until the border."""
    i, j = len(z) - 1, len(z[0]) - 1
    cells = []
    while i >= 0 and j >= 0:
        cells.append((i, j))
        _, left, top, diagonal = z[i][j].mean(1).tolist()
        step = max([(diagonal, (1, 1)), (left, (0, 1)), (top, (1, 0))], key=lambda x: x[0])[1]
        i, j = i - step[0], j - step[1]
    return cells[::-1]
