"""MatchPyramid pixel by pixel, one pair at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tests.reference import arc, mv_lstm, pooling


def image(model, left: Sequence, right: Sequence) -> Tensor:
    """M_ij (c, m, n) of two texts: word ids, or for the indicator the words themselves."""
    kind = type(model.interaction).__name__
    if kind == "Indicator":
        return torch.tensor([[[float(x == y) for y in right] for x in left]], dtype=model.conv_1.weight.dtype)
    E = model.encoder.embedding.weight

    def cell(x: int, y: int) -> Tensor:
        return (E[x] @ E[y])[None] if kind == "Dot" else torch.stack(mv_lstm.interaction(model.interaction, E[x], E[y]))

    return torch.stack([torch.stack([cell(x, y) for y in right]) for x in left]).permute(2, 0, 1)


def convolution(layer: torch.nn.Conv2d, z: Tensor) -> Tensor:
    """relu(w * z + b) at every place of z (c, m, n); 0 around it."""
    m, n = z.shape[1:]
    out = []
    before = layer.kernel_size[0] // 2
    for i in range(m):
        for j in range(n):
            total = layer.bias
            for s in range(layer.kernel_size[0]):
                for t in range(layer.kernel_size[1]):
                    y, x = i + s - before, j + t - before
                    if 0 <= y < m and 0 <= x < n:
                        total = total + layer.weight[:, :, s, t] @ z[:, y, x]
            out.append(torch.relu(total))
    return torch.stack(out, 1).view(-1, m, n)


def pooled(z: Tensor) -> Tensor:
    """The largest of each 2 x 2 cells; fewer at an odd end."""
    rows, columns = range(0, z.shape[1], 2), range(0, z.shape[2], 2)
    cells = [z[:, i : i + 2, j : j + 2].flatten(1).max(1).values for i in rows for j in columns]
    return torch.stack(cells, 1).view(-1, len(rows), len(columns))


def recognise(model, z: Tensor) -> Tensor:
    """From an image to the score."""
    z = pooled(convolution(model.conv_2, pooling.dynamic_max(convolution(model.conv_1, z), model.grid)))
    return arc.mlp(model.head, z.flatten())


def match_pyramid(model, left: Sequence, right: Sequence) -> Tensor:
    """The score of one pair."""
    return recognise(model, image(model, left, right))
