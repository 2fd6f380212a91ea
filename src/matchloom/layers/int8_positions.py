"""Positions as whole numbers of eight bits: a fourth of the bytes, and cosines that no order of summation moves.

    q = round(127 x / max |x|)            cos(x, y) is about  q'p / (|q| |p|)

q'p of up to 1,040 numbers is below 2^24, so that every partial sum is exact in single precision, whatever the batch,
the threads or the library that adds it up. Wider ones are multiplied in double precision, which is exact as well.

A position is its D numbers and then |q|^2 in four digits to the base of 128, by which it needs no scale beside it. A
word that was not read, and padding, has -1 in their places: bytes alone say all that a match has to know.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.onnx import is_in_onnx_export

from matchloom.batches import PairBatch
from matchloom.kernels import int8_cosines as kernel
from matchloom.layers.interactions import gather_rows

TOP = 127
WIDEST = 2**24 // TOP**2  # numbers whose products single precision adds up exactly
DIGITS = 4
_BASE = 128
_POWERS = tuple(_BASE**n for n in reversed(range(DIGITS)))
_AT_A_TIME = 1 << 18  # numbers made floats at a time: they stay in the cache, and no page is asked for anew


def quantised(x: Tensor, read: Tensor) -> Tensor:
    """Positions (N, L, D), and which of them were read (N, L), as int8. (N, L, D + 4)"""
    largest = x.abs().amax(2, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
    q = torch.round(x / largest * TOP) * read[:, :, None]
    squares = (q * q).sum(2)
    digits = torch.stack([torch.floor(squares / power) % _BASE for power in _POWERS], 2)
    return torch.cat([q, digits.masked_fill(~read[:, :, None], -1)], 2).to(torch.int8)


def was_read(encoded: Tensor) -> Tensor:
    """True where there is a word that was read. (N, L)"""
    return encoded[:, :, -1] >= 0


def inverse_lengths(encoded: Tensor, dtype: torch.dtype) -> Tensor:
    """1 / |q| of each position; 0 where q is 0 or was not read. (N, L)"""
    squares = encoded[:, :, -DIGITS:].to(dtype) @ _powers(dtype, encoded.device)
    return torch.where(squares > 0, squares, torch.inf).rsqrt()


@cache
def _powers(dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(_POWERS, dtype=dtype, device=device)


def unit_positions(encoded: Tensor, dtype: torch.dtype) -> Tensor:
    """The L2-normalised positions. (N, L, D)"""
    return encoded[:, :, :-DIGITS].to(dtype) * inverse_lengths(encoded, dtype)[:, :, None]


def int8_cosines(left: Tensor, right: Tensor, batch: PairBatch, dtype: torch.dtype) -> Tensor:
    """The cosines of all positions of each pair, -inf where either was not read. (B, L, R)"""
    if dtype == torch.float64 and len(left) == 1 and left.shape[2] - DIGITS <= WIDEST and _native(left, right):
        return kernel.cosines(left[0], gather_rows(right, batch.right_rows), DIGITS)
    sides = ((left, batch.left_rows, 2), (right, batch.right_rows, 1))
    cosines = _products(left, right, batch).to(dtype)
    for side, rows, dim in sides:
        cosines *= inverse_lengths(side, dtype)[rows].unsqueeze(dim)
    for side, rows, dim in sides:
        cosines.masked_fill_(~was_read(side)[rows].unsqueeze(dim), -torch.inf)
    return cosines


def _native(left: Tensor, right: Tensor) -> bool:
    return kernel.serves(left, right) and not is_in_onnx_export()


def _products(left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
    """q'p for all positions of each pair: whole numbers, exact. (B, L, R)"""
    dtype = torch.float32 if left.shape[2] - DIGITS <= WIDEST else torch.float64
    q, right = left.to(dtype), gather_rows(right, batch.right_rows)
    q[:, :, -DIGITS:] = 0  # so that whole rows may be multiplied
    if len(q) > 1:
        return gather_rows(q, batch.left_rows) @ right.to(dtype).transpose(1, 2)
    flat = right.flatten(0, 1)
    found = [q[0] @ some.to(dtype).T for some in torch.split(flat, max(1, _AT_A_TIME // flat.shape[1]))]
    return torch.cat(found, 1).view(-1, *right.shape[:2]).transpose(0, 1)
