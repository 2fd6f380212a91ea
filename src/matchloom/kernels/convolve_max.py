"""Convolutions of which the largest number of each cell of a grid is kept, by the native kernel: convolve_max.cpp."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from matchloom.kernels.native import ConvolveMaxTask, run
from matchloom.kernels.products import loaded, taken

_FEW = 16  # maps for which a second thread costs more than it saves


class Pooled(NamedTuple):
    """What is convolved, but for maps and weights: own rows and columns of each map, zeros before them, and the grid.

    The grid has size x size cells over each map's own rows and columns, as `layers.dynamic_pooling.dynamic_max` lays
    it; with `window`, squares of so many rows over the whole map, the last ones smaller.
    """

    heights: Tensor
    widths: Tensor
    above: int
    before: int
    size: int = 0
    window: int = 0


def convolve_max(x: Tensor, w: Tensor, bias: Tensor, pooled: Pooled) -> Tensor:
    """max(0, the largest of a cell's rows and columns) of the maps x, convolved. (B, O, G, G')

    x (B, C, h, w), of which map b has heights[b] x widths[b] cells, and what lies outside counts as 0; w (O, C, kh, kw)
    and bias (O,) as nn.Conv2d has them. A map's result depends on that map alone, to the last bit. Of equal numbers in
    a cell the first one gets the gradient.
    """
    if torch.is_grad_enabled() and any(one.requires_grad for one in (x, w, bias)):
        found: Tensor = _Function.apply(x, w, bias, pooled)  # type: ignore[no-untyped-call]
        return found
    return _Call(x, w, bias, pooled).forward(keep=False)[0]


class _Call:
    """Holds on to every array whose address the tasks have."""

    def __init__(self, x: Tensor, w: Tensor, bias: Tensor, pooled: Pooled) -> None:
        B, C, h, width = x.shape
        O, channels, kh, kw = w.shape  # noqa: E741
        # The kernel trusts its sizes and types, so that they are checked here.
        fits = channels == C and bias.shape == (O,) and 0 <= pooled.above < kh and 0 <= pooled.before < kw
        if not fits or x.dtype != torch.float32 or (pooled.size < 1) == (pooled.window < 1):
            raise ValueError(f"w, bias and grid must fit float32 maps of {C} channels: {tuple(w.shape)}, {pooled[2:]}")
        self.heights, self.widths = pooled.heights.numpy(), pooled.widths.numpy()
        for own, most in ((self.heights, h), (self.widths, width)):
            if own.dtype != np.int64 or own.shape != (B,) or (B and not 1 <= own.min() <= own.max() <= most):
                raise ValueError(f"heights and widths must be int64, one for each of {B} maps, and lie in 1 to {most}")
        self.heights, self.widths = map(np.ascontiguousarray, (self.heights, self.widths))
        self.x = x.detach() if x.stride(3) == 1 else x.detach().contiguous()
        self.w, self.bias = taken(w, bias)
        self.B, self.threads = B, torch.get_num_threads()
        grid = (pooled.size, pooled.size) if pooled.size else (-(-h // pooled.window), -(-width // pooled.window))
        self.shape = (B, O, *grid)
        self.fields: dict[str, Any] = {
            "channels": C,
            "height": h,
            "width": width,
            "outputs": O,
            "kernel_height": kh,
            "kernel_width": kw,
            "above": pooled.above,
            "before": pooled.before,
            "rows": grid[0],
            "columns": grid[1],
            **dict(zip(("map_step", "channel_step", "row_step"), self.x.stride(), strict=False)),
            "window": pooled.window,
            "heights": self.heights.ctypes.data,
            "widths": self.widths.ctypes.data,
            "x": self.x.data_ptr(),
            "w": self.w.data_ptr(),
            "bias": self.bias.data_ptr(),
        }

    def _tasks(self, **fields: int | None) -> list[ConvolveMaxTask]:
        step = -(-self.B // self.threads) if self.B > _FEW else self.B
        starts = range(0, self.B, step or 1)
        return [ConvolveMaxTask(**self.fields, **fields, begin=n, end=min(self.B, n + step)) for n in starts]

    def forward(self, *, keep: bool) -> tuple[Tensor, Tensor | None]:
        """What is kept of the maps and, for the gradient, its places."""
        out = self.x.new_empty(self.shape)
        places = torch.empty(self.shape, dtype=torch.int32) if keep else None
        tasks = self._tasks(out=out.data_ptr(), places=None if places is None else places.data_ptr())
        run(loaded().convolve_max_forward, tasks, self.threads, "convolution")
        return out, places

    def backward(self, up: Tensor, places: Tensor, wants_x: bool) -> tuple[Tensor | None, Tensor, Tensor]:
        """The gradients of x, where it is wanted, of w and of the bias."""
        (up,) = taken(up)
        x_gradient = self.x.new_empty(self.x.shape) if wants_x else None
        address = None if x_gradient is None else x_gradient.data_ptr()
        tasks = self._tasks(out_gradient=up.data_ptr(), places=places.data_ptr(), x_gradient=address)
        # Tasks that run side by side have sums of their own, added in a fixed order.
        w, bias = self.w.new_zeros(len(tasks), *self.w.shape), self.w.new_zeros(len(tasks), *self.bias.shape)
        for task, of_w, of_bias in zip(tasks, w, bias, strict=True):
            task.w_gradient, task.bias_gradient = of_w.data_ptr(), of_bias.data_ptr()
        run(loaded().convolve_max_backward, tasks, self.threads, "convolution")
        return x_gradient, w.sum(0), bias.sum(0)


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, bias: Tensor, pooled: Pooled) -> Tensor:
        out, places = _Call(x, w, bias, pooled).forward(keep=True)
        ctx.save_for_backward(x, w, bias, places)
        ctx.pooled = pooled
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, w, bias, places = ctx.saved_tensors
        call = _Call(x, w, bias, ctx.pooled)
        return *call.backward(gradients[0], places, ctx.needs_input_grad[0]), None
