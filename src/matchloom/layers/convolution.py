"""A convolution block: narrow convolution, batch normalisation, pooling, tanh; exact, and as little of it as will do.

Three things are saved, and none changes a value:
- Where a map is 0 its convolution is 0. A block takes the part of the map that is not, and where that part lies.
- Batch normalisation is affine for each channel, so that it may come after pooling (for the maximum with the sign of
  its slope before): only its mean and variance are those of the unpooled map.
- Scoring needs no mean and variance of the batch. The average of a convolution is the convolution of averages, at the
  few places that are left.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from matchloom.kernels import products
from matchloom.kernels.convolve_max import Pooled, convolve_max
from matchloom.layers.dynamic_pooling import dynamic_max
from matchloom.layers.interactions import kernels_serve

EPSILON = 1e-5  # added to the variance
MOMENTUM = 0.1  # of a new batch in the running mean and variance


def convolved(maps: Tensor, layer: nn.Conv2d, heights: Tensor, widths: Tensor) -> Tensor:
    """A convolution of maps (B, C, h, w), of which map b has heights[b] x widths[b] cells and zeros elsewhere.

    (B, maps, h, w), or what torch makes of an even kernel. In the copy of a model that scores, whose weights are in
    double precision, maps of float32 go to the native kernel: no cell depends on others than its window's, to the last
    bit, and cells outside are 0.
    """
    if maps.dtype == layer.weight.dtype or not products.serves(maps):
        return layer(maps)  # type: ignore[no-any-return]
    assert not isinstance(layer.padding, str)
    assert layer.bias is not None
    above, before = layer.padding
    w, b, x = layer.weight.float(), layer.bias.float(), maps.permute(0, 2, 3, 1)
    return products.convolve(x, heights, widths, w, b, above=above, before=before).permute(0, 3, 1, 2)


def convolved_max(
    maps: Tensor, layer: nn.Conv2d, heights: Tensor, widths: Tensor, *, size: int = 0, window: int = 0
) -> Tensor:
    """relu of a convolution, of which the largest number in each cell of a grid is kept; maps as of `convolved`.

    size x size cells lie over each map's own rows and columns as `dynamic_max` lays them, or squares of `window` rows
    over the whole map. Where the native kernel serves no convolved map is written, and the backward pass walks through
    the cells alone: of equal numbers in a cell the first gets the gradient. `dynamic_max` divides it among them.
    """
    assert not isinstance(layer.padding, str)
    assert layer.bias is not None
    if kernels_serve(maps):
        above, before = layer.padding
        pooled = Pooled(heights, widths, above, before, size, window)
        return convolve_max(maps, layer.weight.float(), layer.bias.float(), pooled)
    z: Tensor = layer(maps)  # an even kernel makes one row and one column more
    if size:
        return torch.relu(dynamic_max(z, heights, widths, size))
    return functional.max_pool2d(torch.relu(z[:, :, : maps.shape[2], : maps.shape[3]]), window, ceil_mode=True)


class Moments(torch.autograd.Function):
    """Mean and variance of each channel of y (B, C, h, w), where `more` zeros a channel lie outside of y."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, more: int) -> tuple[Tensor, Tensor]:
        """(C,), (C,)"""
        inside = y.numel() // y.shape[1]
        share = inside / (inside + more)
        mean, variance = torch.ops.aten.batch_norm_update_stats(y, None, None, 0.0)
        whole = mean * share
        ctx.save_for_backward(y, whole)
        ctx.total = inside + more
        return whole, (variance + mean.square()) * share - whole.square()

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        """d mean / dy = 1 / n and d variance / dy = 2 (y - mean) / n, inside."""
        y, mean = ctx.saved_tensors
        of_mean, of_variance = (slope / ctx.total for slope in slopes)
        scale = 2 * of_variance[:, None, None]
        return torch.addcmul((of_mean[:, None, None] - scale * mean[:, None, None]), scale, y), None


class ConvolutionBlock(nn.Module):
    """tanh(pool(normalise(F * x))): L^t of M2S-Net's equation 3. Its bias b is the normalisation's `beta`.

    A bias before the normalisation would be taken off again with the mean.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, channels: int, filters: int, *, size: int, width: int, pool: int, average: bool) -> None:
        """For square maps of `size` cells a side, filters of `width` and pooling windows of `pool`."""
        super().__init__()
        self.size, self.pool, self.average = size, pool, average
        self.F = nn.Parameter(torch.empty(filters, channels, width, width))
        self.gamma = nn.Parameter(torch.ones(filters))
        self.beta = nn.Parameter(torch.zeros(filters))
        self.register_buffer("mean", torch.zeros(filters))
        self.register_buffer("variance", torch.ones(filters))

    @property
    def unpooled(self) -> int:
        """Cells a side of the convolved map."""
        return self.size - self.F.shape[2] + 1

    @property
    def pooled(self) -> int:
        """Cells a side of what comes out."""
        return self.unpooled // self.pool

    def needed(self, start: int, stop: int) -> tuple[int, int]:
        """The cells of a side that must be given where only start ... stop - 1 are not 0: whole pooling windows."""
        reach = self.F.shape[2] - 1
        first = max(0, start - reach) // self.pool * self.pool
        last = min(self.unpooled, -(-stop // self.pool) * self.pool)
        return first, last + reach

    def forward(self, x: Tensor, top: int = 0, left: int = 0) -> Tensor:
        """(B, C, h, w), the cells from (top, left) of a map that is 0 elsewhere -> (B, filters, pooled, pooled)

        The gradient of x is meant for the cells for which `needed` was asked; those around them have a part of theirs.
        """
        x = x.contiguous(memory_format=torch.channels_last)  # twice as fast for few channels
        if self.training:
            y = functional.conv2d(x, self.F)  # (B, filters, h', w')
            mean, variance = Moments.apply(y, len(x) * (self.unpooled**2 - y.shape[2] * y.shape[3]))  # type: ignore[no-untyped-call]
            self._remember(mean.detach(), variance.detach(), len(x) * self.unpooled**2)
            p = functional.avg_pool2d(y, self.pool) if self.average else self._largest(y)
        else:
            mean, variance = self.mean, self.variance
            if self.average:
                p = functional.conv2d(functional.avg_pool2d(x, self.pool, stride=1), self.F, stride=self.pool)
            else:
                p = self._largest(functional.conv2d(x, self.F))
        slope = self.gamma * torch.rsqrt(variance + EPSILON)
        top, left = top // self.pool, left // self.pool
        around = (left, self.pooled - left - p.shape[3], top, self.pooled - top - p.shape[2])
        p = functional.pad(p, around)  # pooled zeros
        return torch.tanh(p * slope[:, None, None] + (self.beta - mean * slope)[:, None, None])

    def _largest(self, y: Tensor) -> Tensor:
        """The cell of each pooling window that is the largest once it is normalised."""
        sign = torch.where(self.gamma < 0, -1.0, 1.0).to(y.dtype)[:, None, None]
        return functional.max_pool2d(y * sign, self.pool) * sign

    def _remember(self, mean: Tensor, variance: Tensor, cells: int) -> None:
        self.mean.lerp_(mean, MOMENTUM)
        self.variance.lerp_(variance * cells / max(1, cells - 1), MOMENTUM)
