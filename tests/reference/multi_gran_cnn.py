"""MultiGranCNN unit by unit, one pair at a time."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.reference import arc, match_pyramid, pooling


def wide(block: torch.nn.Conv1d, x: list[Tensor]) -> list[Tensor]:
    """tanh(C [x_{t-w+1} ; ... ; x_t] + b) for t from the first unit to w - 1 behind the last, zeros outside."""
    w = block.kernel_size[0]
    out = []
    for t in range(len(x) + w - 1):
        total = block.bias
        for s in range(w):
            i = t - w + 1 + s
            if 0 <= i < len(x):
                total = total + block.weight[:, :, s] @ x[i]
        out.append(torch.tanh(total))
    return out


def k_largest_in_order(x: list[Tensor], k: int) -> list[Tensor]:
    """The k largest values of each dimension as they stand; of equal ones the first."""
    rows = []
    for d in range(len(x[0])):
        best = sorted(range(len(x)), key=lambda t: (-float(x[t][d].detach()), t))[:k]
        rows.append(torch.stack([x[t][d] for t in sorted(best)]))
    return list(torch.stack(rows, 1))


def units(model, ids: list[int]) -> list[list[Tensor]]:
    """Words, short phrases, long phrases and the sentence."""
    levels = [[model.encoder.embedding.weight[i] for i in ids]]
    for n, block in enumerate(model.blocks, start=1):
        k = 1 if n == 3 else max(model.alpha, math.ceil((3 - n) / 3 * len(ids)))
        levels.append(k_largest_in_order(wide(block, levels[-1]), k))
    return levels


def feature(model, u: Tensor, v: Tensor) -> Tensor:
    if model.kind == "direct":
        return torch.exp(-((u - v) ** 2).sum() / 4)
    if model.kind == "indirect":
        return torch.sigmoid(u @ model.M.M @ v + model.M.b[0])
    w = torch.cat([model.w_u.weight[0], model.w_v.weight[0]])
    return torch.sigmoid(w @ torch.cat([u, v]) + model.w_u.bias[0])


def features(model, left: list[int], right: list[int]) -> Tensor:
    """F^ (1, S_l, S_r)"""
    U, V = ([unit for level in units(model, ids) for unit in level] for ids in (left, right))
    return torch.stack([torch.stack([feature(model, u, v) for v in V]) for u in U])[None]


def recognise(model, F: Tensor) -> Tensor:
    """From F^ to the score."""
    z = pooling.dynamic_max(F, model.grid)
    for conv in (model.conv_1, model.conv_2):
        z = match_pyramid.pooled(match_pyramid.convolution(conv, z))
    return arc.mlp(model.head, z.flatten())


def multi_gran_cnn(model, left: list[int], right: list[int]) -> Tensor:
    """The score of one pair of word ids."""
    return recognise(model, features(model, left, right))
