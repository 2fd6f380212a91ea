"""ARC-I and ARC-II as the paper has them: texts padded with zeros to one length, every window looked at in turn."""

from __future__ import annotations

import torch
from torch import Tensor


def gate(v: Tensor) -> float:
    return 0.0 if all(float(x) == 0.0 for x in v.detach().flatten()) else 1.0


def padded_length(max_words: int, window: int, layers: int) -> int:
    """A length at which every layer has a window beginning at each unit that stems from the first `max_words` words."""
    n = -(-max_words // 2**layers)
    for _ in range(layers):
        n = 2 * n + window - 1
    return n


def padded(model, ids: list[int], length: int) -> list[Tensor]:
    x = [model.encoder.embedding.weight[i] for i in ids[: model.max_words]]
    return x + [torch.zeros_like(x[0])] * (length - len(x))


def arc_i(model, left: list[int], right: list[int]) -> Tensor:
    """The score of one pair of word ids."""
    width = model.layers[0].width
    sides = []
    for ids in (left, right):
        z = padded(model, ids, padded_length(model.max_words, width, len(model.layers)))
        for layer in model.layers:
            v = [torch.cat(z[i : i + width]) for i in range(len(z) - width + 1)]
            z = [gate(w) * torch.relu(layer.W.weight @ w + layer.W.bias) for w in v]
            z = [torch.maximum(z[i], z[i + 1]) for i in range(0, len(z), 2)]
        sides += z
    return mlp(model.head, torch.cat(sides))


def first_map(model, left: list[int], right: list[int]) -> list[list[Tensor]]:
    """z^(1) (maps,) of every pair of windows; closed where either has no word."""
    width, length = model.window, padded_length(model.max_words, model.window, len(model.layers) + 1)
    x, y = (padded(model, ids, length) for ids in (left, right))
    W = torch.cat([model.W_x.weight, model.W_y.weight], 1)
    starts = range(length - width + 1)
    z = []
    for i in starts:
        u = torch.cat(x[i : i + width])
        z.append([])
        for j in starts:
            v = torch.cat(y[j : j + width])
            z[-1].append(gate(u) * gate(v) * torch.relu(W @ torch.cat([u, v]) + model.W_x.bias))
    return z


def arc_ii(model, left: list[int], right: list[int]) -> Tensor:
    """The score of one pair of word ids."""
    return above(model, first_map(model, left, right))


def above(model, z: list[list[Tensor]]) -> Tensor:
    """From z^(1) to the score."""
    z = pooled(z)
    for layer in model.layers:
        width = layer.width
        above = []
        for i in range(len(z) - width + 1):
            above.append([])
            for j in range(len(z[0]) - width + 1):
                v = torch.stack([torch.stack(row[j : j + width]) for row in z[i : i + width]]).permute(2, 0, 1)
                w = (layer.W.weight * v).sum((1, 2, 3)) + layer.W.bias
                above[-1].append(gate(v) * torch.relu(w))
        z = pooled(above)
    return mlp(model.head, torch.stack([torch.stack(row) for row in z]).permute(2, 0, 1).flatten())


def pooled(z: list[list[Tensor]]) -> list[list[Tensor]]:
    def largest(i: int, j: int) -> Tensor:
        return torch.maximum(torch.maximum(z[i][j], z[i][j + 1]), torch.maximum(z[i + 1][j], z[i + 1][j + 1]))

    return [[largest(i, j) for j in range(0, len(z[0]), 2)] for i in range(0, len(z), 2)]


def mlp(head, q: Tensor) -> Tensor:
    r = torch.relu(head.W_r.weight @ q + head.W_r.bias)
    return head.W_s.weight[0] @ r + head.W_s.bias[0]
