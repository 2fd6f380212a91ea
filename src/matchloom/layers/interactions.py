"""How two positions interact: s(u, v) for every left vector u and right vector v, a grid (B, C, L, R).

The vectors come for each distinct text, (N, L, E), with the batch that says which texts make a pair: what depends on
one side alone is computed once for each text.

`pool` gives the k largest cells of a pair. Where the native kernel serves no grid is written for them, and their
gradient touches these cells alone. In the copy of a model that scores (`single`)
positions are float32, and the kernel makes grids too, whose cells depend on their two words alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, pad
from torch.onnx import is_in_onnx_export

from matchloom.batches import PairBatch
from matchloom.kernels import interact, products
from matchloom.layers.pooling import k_max

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


def l2_normalize(x: Tensor, *, single: bool = False) -> Tensor:
    """Vectors of length one, (..., E); with `single`, the copy that scores, in float32."""
    if single:
        x = x.float()
    return products.l2_normalize_rows(x) if kernels_serve(x) else normalize(x, dim=-1)


def kernels_serve(*given: Tensor) -> bool:
    """Whether the native kernels can take these tensors, and no graph is being made of what is done with them."""
    return not is_in_onnx_export() and products.serves(*given)


class Interaction(nn.Module):
    """What all interactions of vectors have in common: u'v, unless a form stands between u and v."""

    channels = 1
    relu = False
    single = False  # set in the copy that scores

    def prepare(self, x: Tensor) -> Tensor:
        """Positions as they are."""
        return x.float() if self.single else x

    def form(self) -> Tensor | None:
        """What is between [u ; 1] and [v ; 1], (E + 1, C, E + 1)."""
        return None

    def meeting(self, left: Tensor, right: Tensor, batch: PairBatch) -> interact.Meeting:
        """What the native kernel is asked."""
        form = self.form()
        return interact.Meeting(left, right, batch, None if form is None else form.float(), self.relu)

    def forward(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """(N, L, E), (M, R, E) -> (B, C, L, R)"""
        if self.single and kernels_serve(left, right):
            return interact.grid(self.meeting(left, right, batch))
        return self.grid(left, right, batch)

    def grid(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """All cells by torch. (B, C, L, R)"""
        return dot(left, right, batch)[:, None]

    def pool(self, left: Tensor, right: Tensor, batch: PairBatch, k: int) -> Tensor:
        """The k largest values of each channel in descending order; 0 where there are fewer cells. (B, C, k)"""
        if not kernels_serve(left, right):
            return k_max(self.grid(left, right, batch), batch.cells, k)[0]
        return interact.k_largest(self.meeting(left, right, batch), k)[0]


class Dot(Interaction):
    """u'v."""


class Cosine(Interaction):
    """u'v / (|u| |v|). Vectors are L2-normalised when they are encoded, once for each text."""

    def prepare(self, x: Tensor) -> Tensor:
        """L2-normalised positions."""
        return l2_normalize(x, single=self.single)


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


def form_of(M: Tensor, factored: bool, single: bool = False) -> Tensor:
    """The matrix between u and v: M itself, or MM', in whose eyes every vector is most like itself."""
    if not factored:
        return M
    if single:  # by the kernel, whatever torch's threads are
        slices = M.float().view(-1, *M.shape[-2:])
        return torch.stack([products.product(one, one.T) for one in slices]).view_as(M).to(M.dtype)
    return M @ M.mT


class Bilinear(Interaction):
    """u'Mv + b; `factored`: u'MM'v + b."""

    def __init__(self, size: int, *, factored: bool = False) -> None:
        super().__init__()
        self.factored = factored
        self.M = nn.Parameter(torch.empty(size, size))
        self.b = nn.Parameter(torch.empty(1))

    def form(self) -> Tensor:
        """[[M, 0], [0, b]]"""
        return pad(form_of(self.M, self.factored, self.single), (0, 1, 0, 1)).add(
            pad(self.b[None], (len(self.M), 0, len(self.M), 0))
        )[:, None]

    def grid(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """(N, L, E), (M, R, E) -> (B, 1, L, R)"""
        return dot(left @ form_of(self.M, self.factored), right, batch)[:, None] + self.b


class TensorLayer(Interaction):
    """relu(u' M[1:c] v + W [u ; v] + b), c slices; `factored`: M[i]M[i]' in place of M[i]."""

    relu = True

    def __init__(self, size: int, slices: int, *, factored: bool = False) -> None:
        super().__init__()
        self.channels, self.factored = slices, factored
        self.M = nn.Parameter(torch.empty(slices, size, size))
        self.W_u = nn.Parameter(torch.empty(size, slices))
        self.W_v = nn.Parameter(torch.empty(size, slices))
        self.b = nn.Parameter(torch.empty(slices))

    def form(self) -> Tensor:
        """With a 1 behind each vector all terms are one bilinear form:
        u' M v + W_u u + W_v v + b = [u ; 1]' [[M, W_u], [W_v', b]] [v ; 1].
        """
        M = form_of(self.M, self.factored, self.single)
        upper = torch.cat([M.transpose(0, 1), self.W_u[:, :, None]], 2)  # (E, C, E + 1)
        lower = torch.cat([self.W_v.T, self.b[:, None]], 1)[None]  # (1, C, E + 1)
        return torch.cat([upper, lower])  # (E + 1, C, E + 1)

    def grid(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Two matrix products do it. (N, L, E), (M, R, E) -> (B, C, L, R), laid out as (B, L, C, R)"""
        L, R, C = left.shape[1], right.shape[1], self.channels
        u = pad(left, (0, 1), value=1.0) @ self.form().flatten(1)  # (N, L, C * (E + 1))
        grid = dot(u.view(left.shape[0], L * C, -1), pad(right, (0, 1), value=1.0), batch)  # (B, L * C, R)
        return torch.relu_(grid).view(-1, L, C, R).transpose(1, 2)  # in place: the grid is large
