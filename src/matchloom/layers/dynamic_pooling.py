"""Dynamic pooling: maps of any size into a grid of one size (Socher et al., 2011; Pang et al., 2016)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.onnx import is_in_onnx_export


def dynamic_max(maps: Tensor, rows: Tensor, columns: Tensor, size: int) -> Tensor:
    """The largest value in each cell of a size x size grid that is laid over each pair's own rows x columns.

    maps (B, C, L, R), rows and columns (B,) -> (B, C, size, size). Cell a holds the rows from floor(a * rows / size) up
    to floor((a + 1) * rows / size): every row is in one cell, and cells differ by one row at most. A map with fewer
    rows than the grid lends a row to several cells. Likewise the columns. What lies outside is never read.
    """
    return _largest(maps, _spread(rows, size), _spread(columns, size))


def dynamic_min(maps: Tensor, rows: Tensor, columns: Tensor, size: int) -> Tensor:
    """The smallest value in each cell of a grid as Socher et al. lay it: the last cells are those with a row more.

    Shapes as of `dynamic_max`. Where there are fewer rows than cells each row is doubled until there are enough.
    """
    return -_largest(-maps, _last_wider(rows, size), _last_wider(columns, size))


def _spread(lengths: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The first and the last row of each cell, cells with a row more spread among the others. (B, size) each"""
    bounds = torch.arange(size + 1, device=lengths.device) * lengths[:, None] // size  # (B, size + 1)
    return bounds[:, :-1], torch.maximum(bounds[:, :-1], bounds[:, 1:] - 1)


def _last_wider(lengths: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The first and the last row of each cell: lengths // size rows, in the last lengths % size cells one more."""
    copies = torch.ones_like(lengths)
    for _ in range(size.bit_length()):
        copies = torch.where(copies * lengths < size, 2 * copies, copies)
    rows = (copies * lengths)[:, None]
    a = torch.arange(size + 1, device=lengths.device)
    bounds = a * (rows // size) + (a - (size - rows % size)).clamp_min(0)  # (B, size + 1)
    return bounds[:, :-1] // copies[:, None], (bounds[:, 1:] - 1) // copies[:, None]


def _largest(maps: Tensor, rows: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor]) -> Tensor:
    B, C, L, R = maps.shape
    size = rows[0].shape[1]
    x = maps.permute(0, 2, 3, 1)  # (B, L, R, C): whole rows are picked, which is several times faster than gather
    x = x.reshape(B * L, R * C).index_select(0, _members(*rows, L).flatten())
    x = x.view(B, size, -1, R * C).amax(2)  # (B, size, R * C)
    members = _members(*columns, R)[:, None] + R * torch.arange(size, device=maps.device)[:, None, None]
    members = members + (size - 1) * R * torch.arange(B, device=maps.device)[:, None, None, None]
    x = x.view(B * size * R, C).index_select(0, members.flatten())
    return x.view(B, size, size, -1, C).amax(3).permute(0, 3, 1, 2)


def _members(first: Tensor, last: Tensor, width: int) -> Tensor:
    """The places b * width + i of the members of each cell; a smaller cell names its last one again. (B, size, most)"""
    # In a graph, the most that a cell of this width can have: the pairs that it will meet are not known.
    most = width // first.shape[1] + 2 if is_in_onnx_export() else int((last - first).max()) + 1
    offsets = torch.arange(most, device=first.device)
    starts = width * torch.arange(first.shape[0], device=first.device)[:, None, None]
    return starts + torch.minimum(first[:, :, None] + offsets, last[:, :, None])
