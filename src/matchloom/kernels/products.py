"""Products, convolutions, lengths and tanh whose every number depends on its own row alone, to the last bit.

They take float32 on the CPU. But for `l2_normalize_rows` they know no gradients: they serve scores, and searches for
what is to be kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from matchloom.kernels.native import Library, library

LEAST = 1e-12  # a length that nothing is divided by less than, as in torch's `normalize`


def serves(*given: Tensor) -> bool:
    """Whether the kernels can take these: float32 on the CPU, and a library that was built and loads."""
    suits = all(x.device.type == "cpu" and x.dtype == torch.float32 for x in given)
    return suits and not torch.compiler.is_compiling() and library() is not None


def loaded() -> Library:
    """The library, which serves."""
    found = library()
    assert found is not None, "the native kernels are absent"
    return found


def taken(*given: Tensor) -> list[Tensor]:
    """The tensors without gradients and gaps; the kernels trust their types, so that they are checked here."""
    if any(x.dtype != torch.float32 for x in given):
        raise ValueError("the kernels take float32")
    return [x.detach().contiguous() for x in given]


def product(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ w + bias. (..., K), (K, C), (C,) -> (..., C)"""
    return Packed(w, bias)(x)


class Packed:
    """A matrix (K, C), and a bias (C,), as the kernel reads them: packed once for many products."""

    def __init__(self, w: Tensor, bias: Tensor | None = None) -> None:
        self.K, self.C = w.shape
        self.bias = None if bias is None else taken(bias)[0]
        if w.dtype != torch.float32 or (self.bias is not None and self.bias.shape != (self.C,)):
            raise ValueError(f"w must be float32, and bias must have {self.C} numbers")
        self.w = torch.empty(loaded().packed(self.K, self.C))
        loaded().pack(w.data_ptr(), self.K, self.C, *w.stride(), self.w.data_ptr())

    def __call__(self, x: Tensor) -> Tensor:
        """x @ w + bias. (..., K) -> (..., C)"""
        if x.shape[-1] != self.K:
            raise ValueError(f"x must end in {self.K} numbers, found {x.shape[-1]}")
        (x,) = taken(x)
        out, bias = x.new_empty(*x.shape[:-1], self.C), None if self.bias is None else self.bias.data_ptr()
        rows = out.numel() // self.C
        loaded().product(x.data_ptr(), rows, self.K, self.w.data_ptr(), self.C, bias, out.data_ptr())
        return out


def l2_normalize_rows(x: Tensor) -> Tensor:
    """Every row with a length of one, but for rows of zeros. (..., E)"""
    found: Tensor = _L2Normalize.apply(x)  # type: ignore[no-untyped-call]
    return found


class _L2Normalize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        (own,) = taken(x)
        ctx.save_for_backward(own)
        out = torch.empty_like(own)
        if own.numel():
            loaded().normalize(own.data_ptr(), own.numel() // own.shape[-1], own.shape[-1], LEAST, out.data_ptr())
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        (up,) = taken(*gradients)
        out, width = torch.empty_like(x), x.shape[-1]
        if x.numel():
            loaded().normalize_back(x.data_ptr(), up.data_ptr(), x.numel() // width, width, LEAST, out.data_ptr())
        return out


def tanh(x: Tensor) -> Tensor:
    """tanh of every number."""
    (x,) = taken(x)
    out = torch.empty_like(x)
    loaded().tanh(x.data_ptr(), x.numel(), out.data_ptr())
    return out


def convolve(
    x: Tensor, heights: Tensor, widths: Tensor, w: Tensor, bias: Tensor, *, above: int = 0, before: int = 0
) -> Tensor:
    """Maps (B, h, w, C) with their channels last, of which map b has heights[b] x widths[b] cells, convolved.

    w (O, C, kh, kw) as nn.Conv2d has it, bias (O,) -> (B, h, w, O): one number for every cell whose window begins
    `above` rows over it and `before` columns to its left. What lies outside a map counts as 0, and is 0 in the result.
    """
    B, h, width, C = x.shape
    O, _, kh, kw = w.shape  # noqa: E741
    heights, widths = heights.contiguous(), widths.contiguous()
    if w.shape[1] != C or bias.shape != (O,) or not (0 <= above < kh and 0 <= before < kw):
        raise ValueError(
            f"w, bias, above and before do not fit maps of {C} channels: {tuple(w.shape)}, {tuple(bias.shape)}"
        )
    for sizes, most in ((heights, h), (widths, width)):
        if (
            sizes.shape != (B,)
            or sizes.dtype != torch.int64
            or (B and not 0 <= int(sizes.min()) <= int(sizes.max()) <= most)
        ):
            raise ValueError(f"heights and widths must have the shape ({B},) and lie in 0 to {h} and {width}")
    x, weights, bias = taken(x, w.permute(2, 3, 1, 0), bias)
    out = x.new_empty(B, h, width, O)
    if loaded().convolve(
        x.data_ptr(), B, h, width, C, heights.data_ptr(), widths.data_ptr(), weights.data_ptr(), bias.data_ptr(),
        kh, kw, above, before, O, out.data_ptr(),
    ):  # fmt: skip
        raise MemoryError("the native convolution ran out of memory")
    return out
