"""The cross-encoder's own layers position by position: a mark, the left words, the right words; one head."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def cross_encoder(model: torch.nn.Module, left: list[int], right: list[int]) -> Tensor:
    """The score of two texts given as word ids."""
    E, own = model.encoder.embedding.weight, model.own

    def norm(layer: torch.nn.LayerNorm, x: Tensor) -> Tensor:
        spread = torch.sqrt(((x - x.mean()) ** 2).mean() + layer.eps)
        return (x - x.mean()) / spread * layer.weight + layer.bias

    def linear(layer: torch.nn.Linear, x: Tensor) -> Tensor:
        return layer.weight @ x + layer.bias

    xs = [own.mark, *(E[n] for n in left), *(E[n] + own.second for n in right)]
    for layer in own.layers:
        D = len(own.mark)
        q, k, v = zip(*(linear(layer.qkv, x).split(D) for x in xs), strict=True)
        new = []
        for n, x in enumerate(xs):
            raised = [torch.exp(q[n] @ key / math.sqrt(D)) for key in k]
            seen = sum(r * value for r, value in zip(raised, v, strict=True)) / sum(raised)
            a = norm(layer.first, x + linear(layer.out, seen))
            inner = linear(layer.up, a)
            inner = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2
            new.append(norm(layer.second, a + linear(layer.down, inner)))
        xs = new
    return (model.head.weight[0] @ xs[0]) + model.head.bias[0]
