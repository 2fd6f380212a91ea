"""DeepMatch topic by topic and word pair by word pair, one pair of texts at a time."""

from __future__ import annotations

import torch
from torch import Tensor


def pair_weight(model, topic: int, unit: int, x: int, y: int) -> Tensor | None:
    """A_po of the word pair (x, y); None where the patch does not hold it."""
    vectors = []
    for patches, word in ((model.x_patches, x), (model.y_patches, y)):
        entries = list(zip(patches.words.tolist(), patches.homes.tolist(), strict=True))
        if (word, topic) not in entries:
            return None
        vectors.append(patches.L[entries.index((word, topic))])
    return sum(vectors[0][n] * vectors[1][n] for n in range(unit * model.rank, (unit + 1) * model.rank))


def sigmoid(z: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-z))


def upwards(model, z: list[list[Tensor]]) -> Tensor:
    """From z_po of the finest topics to the score."""
    h = [[sigmoid(value) for value in topic] for topic in z]
    for layer in model.layers:
        above = [[layer.b[q, o] for o in range(model.units)] for q in range(len(layer.b))]
        for p, linked in enumerate(layer.targets.tolist()):
            for link, q in enumerate(linked):
                for o in range(model.units):
                    above[q][o] = above[q][o] + sum(layer.W[p, link, i, o] * h[p][i] for i in range(model.units))
        h = [[sigmoid(value) for value in topic] for topic in above]
    flat = [value for topic in h for value in topic]
    return sum(w * value for w, value in zip(model.output.weight[0], flat, strict=True)) + model.output.bias[0]


def deep_match(model, left: list[int], right: list[int]) -> Tensor:
    """The score of one pair of word ids."""
    z = []
    for p in range(len(model.b)):
        z.append([model.b[p, o] for o in range(model.units)])
        for o in range(model.units):
            for x in left:
                for y in right:
                    weight = pair_weight(model, p, o, x, y)
                    if weight is not None:
                        z[p][o] = z[p][o] + weight
    return upwards(model, z)
