"""M2S-Net cell by cell, straight from its equations; and word overlap by sets."""

from __future__ import annotations

import math

import torch
from torch import Tensor

Maps = list[Tensor]  # one (rows, columns) map for each channel


def similarity(model, u: Tensor, v: Tensor, c: int, i: int, j: int) -> Tensor:
    """m^k_ij for two words at places i and j of the frame."""
    kind = model.channels[0].split()[0]
    if kind == "cosine":
        return (u @ v) / (u.norm() * v.norm())
    if kind == "euclidean":
        return 1 / (1 + (u - v).norm()) if not torch.equal(u, v) else torch.ones((), dtype=u.dtype)
    value = u @ model.similarity.U[c] @ v
    return value if model.similarity.B is None else value + model.similarity.B[c, i, j]


def similarities(model, left: list[int], right: list[int]) -> Maps:
    """M: the first words of both texts in the middle of the frame, 0 around them."""
    side = model.frame
    left, right = left[:side], right[:side]
    top, start = (side - len(left)) // 2, (side - len(right)) // 2
    maps = []
    for c in range(len(model.channels)):
        rows = []
        for i in range(side):
            row = []
            for j in range(side):
                inside = 0 <= i - top < len(left) and 0 <= j - start < len(right)
                if inside:
                    u, v = (
                        model.encoder.embedding.weight[left[i - top]],
                        model.encoder.embedding.weight[right[j - start]],
                    )
                    row.append(similarity(model, u, v, c, i, j))
                else:
                    row.append(torch.zeros((), dtype=model.encoder.embedding.weight.dtype))
            rows.append(torch.stack(row))
        maps.append(torch.stack(rows))
    return maps


def convolved(x: Maps, F: Tensor) -> Maps:
    """The narrow convolution F * x, one place after the other."""
    h, w = F.shape[2:]
    rows, columns = x[0].shape
    whole = torch.stack(x)
    return [
        torch.stack(
            [
                torch.stack([(f * whole[:, j : j + h, k : k + w]).sum() for k in range(columns - w + 1)])
                for j in range(rows - h + 1)
            ]
        )
        for f in F
    ]


def pooled(x: Maps, size: int, average: bool) -> Maps:
    def one(window: Tensor) -> Tensor:
        return window.mean() if average else window.max()

    side = x[0].shape[0] // size
    return [
        torch.stack(
            [
                torch.stack([one(y[a * size : (a + 1) * size, b * size : (b + 1) * size]) for b in range(side)])
                for a in range(side)
            ]
        )
        for y in x
    ]


def block(layer, pairs: list[Maps], training: bool) -> tuple[list[Maps], list[Tensor], list[Tensor]]:
    """Convolution, normalisation, pooling, tanh of all pairs; in training by the statistics of all of them together.

    Returns the mean and the variance that the running ones are to be mixed with, too.
    """
    maps = [convolved(x, layer.F) for x in pairs]
    means, variances, news = [], [], []
    for f in range(len(layer.F)):
        cells = torch.cat([y[f].flatten() for y in maps])
        mean, variance = (
            (cells.mean(), ((cells - cells.mean()) ** 2).mean()) if training else (layer.mean[f], layer.variance[f])
        )
        means.append(mean)
        variances.append(variance * len(cells) / (len(cells) - 1))
        for y in maps:
            y[f] = layer.gamma[f] * (y[f] - mean) / torch.sqrt(variance + 1e-5) + layer.beta[f]
    for y in maps:
        news.append([torch.tanh(z) for z in pooled(y, layer.pool, layer.average)])
    return news, means, variances


def m2s_net(model, pairs: list[tuple[list[int], list[int]]], features: list[list[float]], training: bool) -> Tensor:
    """The scores of pairs of word ids with their features."""
    maps = [similarities(model, left, right) for left, right in pairs]
    for layer in model.blocks:
        maps, _, _ = block(layer, maps, training)
    scores = []
    for x, extra in zip(maps, features, strict=True):
        flat = torch.cat([y.flatten() for y in x] + [torch.tensor(extra, dtype=x[0].dtype)])
        h = torch.tanh(model.hidden.weight @ flat + model.hidden.bias)
        no, yes = model.classes.weight @ h + model.classes.bias
        p = torch.exp(yes) / (torch.exp(no) + torch.exp(yes))
        scores.append(torch.log(p / (1 - p)))
    return torch.stack(scores)


def overlap(left: list[str], right: list[str], frequencies: dict[str, int], texts: int) -> list[float]:
    """Shared words / all words, and the same with each shared word's IDF; a word of no text has the largest, 1."""
    shared = set(left) & set(right)
    words = len(left) + len(right)
    if not words:
        return [0.0, 0.0]
    idf = {w: math.log((texts + 1) / (frequencies.get(w, 0) + 1)) / math.log(texts + 1) for w in shared}
    return [len(shared) / words, sum(idf.values()) / words]
