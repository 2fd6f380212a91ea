"""Sentence-BERT word by word: one pair at a time."""

from __future__ import annotations

import torch
from torch import Tensor


def sentence_bert(model: torch.nn.Module, left: list[int], right: list[int]) -> Tensor:
    """The score of two texts given as word ids."""
    E = model.encoder.embedding.weight
    u, v = (sum(E[word] for word in side) / len(side) for side in (left, right))
    return model.w * (u @ v) / (u.norm() * v.norm())
