"""The convolutions of ARC-I and ARC-II (Hu et al., NIPS 2014), whose gate keeps padding silent.

    z_f = g(v) * relu(w_f . v + b_f)        v a window of the layer below; g(v) = 0 where all of v is 0, else 1

followed by max pooling over two neighbours. The paper pads every text with zeros to one length. A window that lies in
the zeros gives 0, and so do the windows above it: here a window begins at every unit of a map, with zeros behind the
last one, and what would follow is 0 and need not be computed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, pad

from matchloom.layers.convolution import convolved


def windows(z: Tensor, width: int) -> Tensor:
    """Each unit with the width - 1 behind it, zeros behind the last. (N, n, C) -> (N, n, width * C)"""
    n = z.shape[1]
    z = pad(z, (0, 0, 0, width - 1))
    return torch.cat([z[:, t : t + n] for t in range(width)], 2)


def pairs_max(z: Tensor, empty: float = 0.0) -> Tensor:
    """The larger of units 1 and 2, 3 and 4, ...; an odd last one meets `empty`. (N, n, C) -> (N, ceil(n / 2), C)"""
    z = pad(z, (0, 0, 0, z.shape[1] % 2), value=empty)
    return torch.maximum(z[:, 0::2], z[:, 1::2])


class GatedConvolution(nn.Module):
    """One layer over the units of a text."""

    def __init__(self, size: int, maps: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.W = nn.Linear(width * size, maps)

    def forward(self, z: Tensor) -> Tensor:
        """(N, n, size) -> (N, n, maps)"""
        v = windows(z, self.width)
        g = (v.detach() != 0).any(2, keepdim=True)
        return torch.relu(self.W(v) * g)


class GatedConvolution2d(nn.Module):
    """One layer over a map of interactions, whose values are not negative."""

    def __init__(self, channels: int, maps: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.W = nn.Conv2d(channels, maps, width)

    def forward(self, z: Tensor, heights: Tensor, widths: Tensor) -> Tensor:
        """(B, channels, l, r) -> (B, maps, l, r); map b has heights[b] x widths[b] units, and behind them zeros."""
        behind = (0, self.width - 1, 0, self.width - 1)
        g = max_pool2d(pad(z.detach().amax(1, keepdim=True), behind), self.width, 1) > 0
        if z.dtype == self.W.weight.dtype:
            z = pad(z, behind)
        return convolved(z, self.W, heights, widths).mul_(g).relu_()
