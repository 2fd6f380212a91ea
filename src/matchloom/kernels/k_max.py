"""Which values k-max pooling keeps, by the native kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from matchloom.kernels.native import library


def serves(x: Tensor) -> bool:
    """Whether the kernel can take x: on the CPU, and a library that was built and loads."""
    return x.device.type == "cpu" and library() is not None


def places(x: Tensor, lengths: Tensor, counts: Tensor) -> Tensor:
    """The positions that each channel keeps, in their order; see `matchloom.layers.pooling.ordered_k_max`.

    x (N, P, C) in float32, lengths and counts (N,) -> (N, K, C) for the largest count K. What lies behind a text's own
    count is the last position.
    """
    N, P, C = x.shape
    x, lengths, counts = x.contiguous(), lengths.contiguous(), counts.contiguous()
    # The kernel trusts its sizes and types, so that they are checked here.
    if x.dtype != torch.float32 or {lengths.dtype, counts.dtype} != {torch.int64}:
        raise ValueError("x must be float32, lengths and counts int64")
    if lengths.shape != (N,) or counts.shape != (N,) or N == 0:
        raise ValueError(f"lengths and counts must have the shape ({N},), which is not empty")
    if int(counts.min()) < 1 or bool((counts > lengths).any()) or int(lengths.max()) > P:
        raise ValueError(f"counts must be 1 or more and at most the lengths, lengths at most {P}")
    loaded = library()
    assert loaded is not None, "the native kernel is absent"
    found = torch.empty(N, int(counts.max()), C, dtype=torch.int64)
    addresses = (lengths.data_ptr(), counts.data_ptr(), found.data_ptr())
    if loaded.k_max(x.data_ptr(), N, P, C, found.shape[1], *addresses):
        raise MemoryError("the native k-max pooling ran out of memory")
    return found
