"""The cosines of one query's positions of eight bits to those of many texts, by the native kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from matchloom.kernels.native import library


def serves(query: Tensor, texts: Tensor) -> bool:
    """Whether the kernel can take them: on the CPU, and a library that was built and loads."""
    return query.device.type == texts.device.type == "cpu" and library() is not None


def cosines(query: Tensor, texts: Tensor, digits: int) -> Tensor:
    """See `matchloom.layers.int8_positions.int8_cosines`. (L, D + digits), (N, R, D + digits) -> (N, L, R)"""
    # The kernel trusts its sizes and types, so that they are checked here.
    if {query.dtype, texts.dtype} != {torch.int8}:
        raise ValueError("query and texts must be int8")
    if query.ndim != 2 or texts.ndim != 3 or query.shape[1] != texts.shape[2] or query.shape[1] < digits:
        raise ValueError(f"query (L, D) and texts (N, R, D) do not fit: {tuple(query.shape)}, {tuple(texts.shape)}")
    loaded = library()
    assert loaded is not None, "the native kernel is absent"
    query, texts = query.contiguous(), texts.contiguous()
    (L, width), (N, R, _) = query.shape, texts.shape
    found = torch.empty(N, L, R, dtype=torch.float64)
    if loaded.int8_cosines(query.data_ptr(), L, texts.data_ptr(), N, R, width - digits, found.data_ptr()):
        raise MemoryError("the native cosines ran out of memory")
    return found
