"""KNRM word by word: the equations of section 3 of its paper, one pair at a time."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def knrm(model: torch.nn.Module, left: list[int], right: list[int]) -> Tensor:
    """The score of two texts given as word ids."""
    E = model.encoder.embedding.weight
    phi = []
    for mu, sigma in zip(model.mu.tolist(), model.sigma.tolist(), strict=True):
        total = torch.zeros((), dtype=E.dtype)
        for i in left:
            K = torch.zeros((), dtype=E.dtype)
            for j in right:
                cosine = E[i] @ E[j] / (E[i].norm() * E[j].norm()).clamp_min(1e-24)
                K = K + torch.exp(-((cosine - mu) ** 2) / (2 * sigma**2))
            total = total + (K.log() if float(K.detach()) > 1e-10 else torch.full((), math.log(1e-10), dtype=E.dtype))
        phi.append(0.01 * total)
    return torch.stack(phi) @ model.head.weight[0] + model.head.bias[0]
