"""From the pieces that a transformer reads to words and to whole texts."""

from __future__ import annotations

import torch
from torch import Tensor

from matchloom.batches import Pieces, Texts


def words_of(x: Tensor, pieces: Pieces, L: int) -> Tensor:
    """The mean of each word's pieces. (N, P, D) -> (N, L, D)"""
    N, _, D = x.shape
    # Place L takes what belongs to no word, and is dropped.
    places = torch.where(pieces.words < 0, L, pieces.words)[:, :, None]
    sums = x.new_zeros(N, L + 1, D).scatter_add(1, places.expand(-1, -1, D), x)
    return sums[:, :L] / counts_of(pieces, L).to(x.dtype)[:, :, None].clamp_min(1)


def mean_of(x: Tensor, pieces: Pieces) -> Tensor:
    """The mean of all pieces of each text. (N, P, D) -> (N, D)"""
    return x.masked_fill(~pieces.mask[:, :, None], 0.0).sum(1) / pieces.lengths[:, None]


def pieces_of(texts: Texts) -> Pieces:
    """What such an encoder reads of texts."""
    assert texts.pieces is not None, "the texts were read without pieces"
    return texts.pieces


def counts_of(pieces: Pieces, L: int) -> Tensor:
    """How many pieces each of L words has, in double precision. (N, L)"""
    places = torch.where(pieces.words < 0, L, pieces.words)
    counts = torch.zeros(places.shape[0], L + 1, dtype=torch.float64, device=places.device)
    return counts.scatter_add(1, places, torch.ones_like(places, dtype=counts.dtype))[:, :L]
