"""How two positions interact: s(u, v) for every left vector u and right vector v, a grid (B, C, L, R).

The vectors come for each distinct text, (N, L, E), with the batch that says which texts make a pair: what depends on
one side alone is computed once for each text.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from matchloom.batches import PairBatch

INITS = ("identity", "random")
NOISE = 0.1  # of what is drawn for M remains where it starts at the identity


def gather_rows(encoded: Tensor, rows: Tensor) -> Tensor:
    """The encoding that belongs to each pair; a single text is seen by all pairs without a copy."""
    if len(encoded) == 1:
        return encoded.expand(len(rows), *encoded.shape[1:])
    if len(encoded) == len(rows) and torch.equal(rows, torch.arange(len(rows), device=rows.device)):
        return encoded  # no copy where each text stands in one pair, as in a ranking
    return encoded.index_select(0, rows)


def dot(left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
    """u'v for all positions of each pair. (N, L, E), (M, R, E) -> (B, L, R)"""
    right = gather_rows(right, batch.right_rows)
    if len(left) == 1:  # one text meets all others: a single matrix product does
        return (right.flatten(0, 1) @ left[0].T).view(*right.shape[:2], -1).transpose(1, 2)
    return gather_rows(left, batch.left_rows) @ right.transpose(1, 2)


class Dot(nn.Module):
    """u'v."""

    channels = 1

    def prepare(self, x: Tensor) -> Tensor:
        """Positions as they are."""
        return x

    def forward(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """(N, L, E), (M, R, E) -> (B, 1, L, R)"""
        return dot(left, right, batch)[:, None]


class Cosine(nn.Module):
    """u'v / (|u| |v|). Vectors are L2-normalised when they are encoded, once for each text."""

    channels = 1

    def prepare(self, x: Tensor) -> Tensor:
        """L2-normalised positions."""
        return nn.functional.normalize(x, dim=-1)

    def forward(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """(N, L, E), (M, R, E) -> (B, 1, L, R)"""
        return dot(left, right, batch)[:, None]


class Indicator(nn.Module):
    """1 where the two words are the same, else 0. Takes a number for each word, (N, L), in place of its vector."""

    channels = 1

    def prepare(self, x: Tensor) -> Tensor:
        """Numbers as they are."""
        return x

    def forward(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """(N, L), (M, R) -> (B, 1, L, R), bool"""
        left, right = gather_rows(left, batch.left_rows), gather_rows(right, batch.right_rows)
        return left[:, None, :, None] == right[:, None, None, :]


def start_at_identity_(M: Tensor) -> None:
    """Make what was drawn for M small noise about the identity, so that equal vectors match from the first step on."""
    with torch.no_grad():
        M.mul_(NOISE).add_(torch.eye(M.shape[-1]))


def form_of(M: Tensor, factored: bool) -> Tensor:
    """The matrix between u and v: M itself, or MM', in whose eyes every vector is most like itself."""
    return M @ M.mT if factored else M


class Bilinear(nn.Module):
    """u'Mv + b; `factored`: u'MM'v + b."""

    channels = 1

    def __init__(self, size: int, *, factored: bool = False) -> None:
        super().__init__()
        self.factored = factored
        self.M = nn.Parameter(torch.empty(size, size))
        self.b = nn.Parameter(torch.empty(1))

    def prepare(self, x: Tensor) -> Tensor:
        """Positions as they are."""
        return x

    def forward(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """(N, L, E), (M, R, E) -> (B, 1, L, R)"""
        return dot(left @ form_of(self.M, self.factored), right, batch)[:, None] + self.b


class TensorLayer(nn.Module):
    """relu(u' M[1:c] v + W [u ; v] + b), c slices; `factored`: M[i]M[i]' in place of M[i]."""

    def __init__(self, size: int, slices: int, *, factored: bool = False) -> None:
        super().__init__()
        self.channels, self.factored = slices, factored
        self.M = nn.Parameter(torch.empty(slices, size, size))
        self.W_u = nn.Parameter(torch.empty(size, slices))
        self.W_v = nn.Parameter(torch.empty(size, slices))
        self.b = nn.Parameter(torch.empty(slices))

    def prepare(self, x: Tensor) -> Tensor:
        """Positions as they are."""
        return x

    def forward(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """(N, L, E), (M, R, E) -> (B, C, L, R), laid out as (B, L, C, R)

        With a 1 behind each vector all terms are one bilinear form, and two matrix products do it:
        u' M v + W_u u + W_v v + b = [u ; 1]' [[M, W_u], [W_v', b]] [v ; 1].
        """
        L, R, C = left.shape[1], right.shape[1], self.channels
        M = form_of(self.M, self.factored)
        upper = torch.cat([M.transpose(0, 1), self.W_u[:, :, None]], 2)  # (E, C, E + 1)
        lower = torch.cat([self.W_v.T, self.b[:, None]], 1)[None]  # (1, C, E + 1)
        form = torch.cat([upper, lower])  # (E + 1, C, E + 1)
        u = pad(left, (0, 1), value=1.0) @ form.flatten(1)  # (N, L, C * (E + 1))
        grid = dot(u.view(left.shape[0], L * C, -1), pad(right, (0, 1), value=1.0), batch)  # (B, L * C, R)
        return torch.relu_(grid).view(-1, L, C, R).transpose(1, 2)  # in place: the grid is large
