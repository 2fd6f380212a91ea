"""The spatial GRU of Match-SRNN (Wan et al., IJCAI 2016, section 4.2): a recurrent network over a grid of interactions.

With q = [h_{i-1,j} ; h_{i,j-1} ; h_{i-1,j-1} ; s_ij], cell (i, j) computes

    r_l, r_t, r_d = sigmoid(W_r q + b_r)                                     d each
    z_i, z_l, z_t, z_d = softmax over the four of W_z q + b_z                d each
    h' = tanh(W s_ij + U [r_l * h_{i,j-1} ; r_t * h_{i-1,j} ; r_d * h_{i-1,j-1}] + b)
    h_ij = z_l * h_{i,j-1} + z_t * h_{i-1,j} + z_d * h_{i-1,j-1} + z_i * h'

On the CPU the native kernel computes it where that was built, in float32 and, without gradients, in float64; the
wavefront below serves everywhere else.
A cell needs its left, upper and diagonal neighbours, so that all cells of one anti-diagonal are computed together.
Cells outside a pair's own m x n lie right of or below it: nothing inside depends on them, and no mask is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from matchloom.kernels.spatial_gru import serves, spatial_gru


class Weights(NamedTuple):
    """The equations' matrices stacked, whatever the options: 7d gates from q, and d candidates from [r * h ; s]."""

    gates: Tensor  # (7d, 3d + c), rows r_l r_t r_d z_i z_l z_t z_d, columns top left diagonal s
    gates_bias: Tensor  # (7d,)
    candidate: Tensor  # (d, 3d + c), columns left top diagonal s
    candidate_bias: Tensor  # (d,)


class SpatialGRU(nn.Module):
    """Scan each pair's grid from (1, 1) to its own (m, n), or with `reverse` from (m, n) back to (1, 1).

    Without `reset` all reset gates are 1, as in the paper's simulation of the longest common subsequence. With `tied`
    the four gates z are the same in every dimension, so that the way a match took can be read from them.
    """

    def __init__(
        self, channels: int, dimensions: int, *, reverse: bool = False, reset: bool = True, tied: bool = False
    ) -> None:
        super().__init__()
        self.dimensions, self.reverse, self.reset, self.tied = dimensions, reverse, reset, tied
        d, q = dimensions, 3 * dimensions + channels
        if reset:
            self.W_r = nn.Parameter(torch.empty(3 * d, q))
            self.b_r = nn.Parameter(torch.empty(3 * d))
        self.W_z = nn.Parameter(torch.empty(4 if tied else 4 * d, q))
        self.b_z = nn.Parameter(torch.empty(4 if tied else 4 * d))
        self.W = nn.Parameter(torch.empty(d, channels))
        self.U = nn.Parameter(torch.empty(d, 3 * d))
        self.b = nn.Parameter(torch.empty(d))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def weights(self) -> Weights:
        """All variants as the full cell: tied gates are repeated, and a reset gate with bias 100 is exactly 1."""
        d = self.dimensions
        W_z: Tensor = self.W_z
        b_z: Tensor = self.b_z
        if self.tied:
            W_z, b_z = W_z.repeat_interleave(d, 0), b_z.repeat_interleave(d)
        if self.reset:
            W_r: Tensor = self.W_r
            b_r: Tensor = self.b_r
        else:
            W_r, b_r = W_z.new_zeros(3 * d, W_z.shape[1]), b_z.new_full((3 * d,), 100.0)
        return Weights(torch.cat([W_r, W_z]), torch.cat([b_r, b_z]), torch.cat([self.U, self.W], 1), self.b)

    def forward(self, s: Tensor, m: Tensor, n: Tensor) -> Tensor:
        """h where each pair's scan ends, (B, d), from interactions s (B, c, L, R) and each pair's own m, n (B,)."""
        weights = self.weights()
        if s.dtype != weights.gates.dtype:  # float32 in the copy of a model that scores: a lane never meets another
            weights = Weights(*(x.to(s.dtype) for x in weights))
        if serves(s, weights.gates):
            return spatial_gru(s, m, n, *weights, reverse=self.reverse)
        h, _ = wavefront(mirrored(s, m, n) if self.reverse else s, weights, gates=False)
        places = diagonal_places(s.shape[2], s.shape[3], s.device)[m - 1, n - 1]
        return h[places, torch.arange(len(m), device=s.device)]

    def scan(self, s: Tensor, m: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        """h (B, d, L, R) and the gates z_i, z_l, z_t, z_d (B, 4, d, L, R) of every cell; meaningless outside m x n."""
        L, R = s.shape[2:]
        h, z = wavefront(mirrored(s, m, n) if self.reverse else s, self.weights(), gates=True)
        assert z is not None
        places = diagonal_places(L, R, s.device)
        h, z = h[places].permute(2, 3, 0, 1), z[places].permute(2, 3, 4, 0, 1)
        return (mirrored(h, m, n), mirrored(z.flatten(1, 2), m, n).view_as(z)) if self.reverse else (h, z)


def wavefront(s: Tensor, weights: Weights, *, gates: bool) -> tuple[Tensor, Tensor | None]:
    """All h (L * R, B, d), cells in the order of their anti-diagonals, and on request all z (L * R, B, 4, d)."""
    B, _, L, R = s.shape
    d = len(weights.candidate_bias)
    order = diagonal_places(L, R, s.device).flatten().argsort()
    steps = torch.split(s.flatten(2).permute(2, 0, 1)[order], diagonal_lengths(L, R))  # (k, B, c) each
    W, b = weights.gates.T, weights.gates_bias
    U, b_h = weights.candidate.T, weights.candidate_bias
    states: list[Tensor] = []
    passed: list[Tensor] = []
    # Each diagonal carries a zero at either end, the border: its rows are low - 1, low, ..., high, high + 1.
    before = last = (s.new_zeros(2, B, d), -1)
    for t, x in enumerate(steps):
        k, low = len(x), max(0, t - R + 1)
        top, left, corner = rows(last, low - 1, k), rows(last, low, k), rows(before, low - 1, k)  # (k, B, d)
        a = torch.cat([top, left, corner, x], 2) @ W + b  # (k, B, 7d)
        r_l, r_t, r_d = torch.sigmoid(a[..., : 3 * d]).chunk(3, 2)
        z = torch.softmax(a[..., 3 * d :].view(k, B, 4, d), 2)  # (k, B, 4, d)
        candidate = torch.tanh(torch.cat([r_l * left, r_t * top, r_d * corner, x], 2) @ U + b_h)
        z_i, z_l, z_t, z_d = z.unbind(2)
        h = z_l * left + z_t * top + z_d * corner + z_i * candidate
        states.append(h)
        if gates:
            passed.append(z)
        before, last = last, (pad(h, (0, 0, 0, 0, 1, 1)), low - 1)
    return torch.cat(states), torch.cat(passed) if gates else None


def rows(diagonal: tuple[Tensor, int], start: int, count: int) -> Tensor:
    """Elements of a diagonal by the row of the grid they belong to; the second of `diagonal` is its first row."""
    h, first = diagonal
    return h[start - first : start - first + count]


def diagonal_lengths(L: int, R: int) -> list[int]:
    """How many cells each anti-diagonal of an L x R grid has."""
    return [min(t, L - 1) - max(0, t - R + 1) + 1 for t in range(L + R - 1)]


def diagonal_places(L: int, R: int, device: torch.device) -> Tensor:
    """For each cell its place when cells are ordered by anti-diagonal, within one by row. (L, R)"""
    i, j = torch.arange(L, device=device)[:, None], torch.arange(R, device=device)
    order = ((i + j) * L + i).flatten().argsort()
    places = torch.empty_like(order)
    places[order] = torch.arange(L * R, device=device)
    return places.view(L, R)


def mirrored(grid: Tensor, m: Tensor, n: Tensor) -> Tensor:
    """grid[b, :, m - 1 - i, n - 1 - j] for each cell of pair b's m x n; other cells stay. (B, C, L, R)"""
    L, R = grid.shape[2:]
    i, j = torch.arange(L, device=grid.device)[:, None], torch.arange(R, device=grid.device)
    rows, columns = m[:, None, None] - 1 - i, n[:, None, None] - 1 - j
    cells = torch.where((rows >= 0) & (columns >= 0), rows * R + columns, i * R + j)  # (B, L, R)
    return grid.flatten(2).gather(2, cells.flatten(1)[:, None].expand(-1, grid.shape[1], -1)).view_as(grid)


def matching_path(z: Tensor) -> list[tuple[int, int]]:
    """The cells that a match came through, from (1, 1)'s side to (m, n): back along the largest of z_l, z_t, z_d.

    z (4, d, m, n) of one pair as a scan from (1, 1) gives it; the gates' mean over dimensions is compared, which for
    tied gates is the gate. The path ends where it leaves the grid. Equal gates: the diagonal first, then left.
    """
    _, z_l, z_t, z_d = z.mean(1).tolist()
    i, j = z.shape[2] - 1, z.shape[3] - 1
    path = []
    while i >= 0 and j >= 0:
        path.append((i, j))
        best = max(z_d[i][j], z_l[i][j], z_t[i][j])
        if z_d[i][j] == best:
            i, j = i - 1, j - 1
        elif z_l[i][j] == best:
            j -= 1
        else:
            i -= 1
    return path[::-1]
