"""ARC-I and ARC-II as the paper has them: texts padded with zeros to one length, every window looked at in turn."""

from __future__ import annotations

import torch
from torch import Tensor


def gate(v: Tensor) -> float:
    return 0.0 if all(float(x) == 0.0 for x in v.detach().flatten()) else 1.0


def padded_length(longest: int, window: int, layers: int) -> int:
    """A length at which every layer has a window beginning at each unit that stems from the first `longest` words."""
    n = -(-longest // 2**layers)
    for _ in range(layers):
        n = 2 * n + window - 1
    return n


def padded(model, ids: list[int], length: int) -> list[Tensor]:
    x = [model.embedding.weight[i] for i in ids[: model.longest]]
    return x + [torch.zeros_like(x[0])] * (length - len(x))


def arc_i(model, left: list[int], right: list[int]) -> Tensor:
    """The score of one pair of word ids."""
    width = model.layers[0].width
    sides = []
    for ids in (left, right):
        z = padded(model, ids, padded_length(model.longest, width, len(model.layers)))
        for layer in model.layers:
            v = [torch.cat(z[i : i + width]) for i in range(len(z) - width + 1)]
            z = [gate(w) * torch.relu(layer.W.weight @ w + layer.W.bias) for w in v]
            z = [torch.maximum(z[i], z[i + 1]) for i in range(0, len(z), 2)]
        sides += z
    return mlp(model.head, torch.cat(sides))


def mlp(head, q: Tensor) -> Tensor:
    r = torch.relu(head.W_r.weight @ q + head.W_r.bias)
    return head.W_s.weight[0] @ r + head.W_s.bias[0]
