"""The spatial GRU cell by cell, straight from the paper's equations 3 and 4, one pair at a time."""

from __future__ import annotations

import torch
from torch import Tensor


def scan(gru, s: Tensor) -> tuple[list[list[Tensor]], list[list[Tensor]]]:
    """h_ij (d,) and the gates z_i, z_l, z_t, z_d (4, d) of every cell, from the interactions s (c, m, n) of one pair.

    With `gru.reverse` the scan starts at (m, n); what is returned at [i][j] belongs to cell (i, j) in any case.
    """
    if gru.reverse:
        h, z = scan_forwards(gru, s.flip(1, 2))
        return [row[::-1] for row in h[::-1]], [row[::-1] for row in z[::-1]]
    return scan_forwards(gru, s)


def scan_forwards(gru, s: Tensor) -> tuple[list[list[Tensor]], list[list[Tensor]]]:
    d = gru.dimensions
    border = torch.zeros(d, dtype=s.dtype)
    h: dict[tuple[int, int], Tensor] = {}
    gates: dict[tuple[int, int], Tensor] = {}
    m, n = s.shape[1:]
    for i in range(m):
        for j in range(n):
            top, left = h.get((i - 1, j), border), h.get((i, j - 1), border)
            diagonal = h.get((i - 1, j - 1), border)
            q = torch.cat([top, left, diagonal, s[:, i, j]])
            if gru.reset:
                r_l, r_t, r_d = (
                    torch.sigmoid(W @ q + b) for W, b in zip(gru.W_r.split(d), gru.b_r.split(d), strict=True)
                )
            else:
                r_l = r_t = r_d = torch.ones(d, dtype=s.dtype)
            rows = 1 if gru.tied else d
            z_ = [(W @ q + b).expand(d) for W, b in zip(gru.W_z.split(rows), gru.b_z.split(rows), strict=True)]
            total = sum(torch.exp(x) for x in z_)
            z_i, z_l, z_t, z_d = (torch.exp(x) / total for x in z_)
            reset = torch.cat([r_l * left, r_t * top, r_d * diagonal])
            candidate = torch.tanh(gru.W @ s[:, i, j] + gru.U @ reset + gru.b)
            h[i, j] = z_l * left + z_t * top + z_d * diagonal + z_i * candidate
            gates[i, j] = torch.stack([z_i, z_l, z_t, z_d])
    return [[h[i, j] for j in range(n)] for i in range(m)], [[gates[i, j] for j in range(n)] for i in range(m)]


def end(gru, s: Tensor) -> Tensor:
    """The h that is scored: at (m, n), or at (1, 1) when the scan goes back."""
    h, _ = scan(gru, s)
    return h[0][0] if gru.reverse else h[-1][-1]
