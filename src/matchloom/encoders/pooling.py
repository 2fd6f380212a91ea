"""From the pieces that a transformer reads to words and to whole texts."""

from __future__ import annotations

import torch
from torch import Tensor

from matchloom.batches import Pieces, Texts
from matchloom.types import MatchloomError

MEAN, FIRST = "mean", "cls"  # what a text's vector is


def pooling_of(name: object) -> str:
    """One of those that are known; others are refused."""
    if name not in (MEAN, FIRST):
        raise MatchloomError(
            f"a text's vector by {str(name)[:40]!r} cannot be read, only {MEAN} and {FIRST}", code="not_supported"
        )
    return str(name)


def words_of(x: Tensor, pieces: Pieces, L: int) -> Tensor:
    """The mean of each word's pieces. (N, P, D) -> (N, L, D)"""
    N, _, D = x.shape
    # Place L takes what belongs to no word, and is dropped.
    places = torch.where(pieces.words < 0, L, pieces.words)[:, :, None]
    sums = x.new_zeros(N, L + 1, D).scatter_add(1, places.expand(-1, -1, D), x)
    return sums[:, :L] / counts_of(pieces, L).to(x.dtype)[:, :, None].clamp_min(1)


def pooled(x: Tensor, mask: Tensor, lengths: Tensor, pooling: str) -> Tensor:
    """One vector of each text: the mean of all its pieces, or that of the mark before it. (N, P, D) -> (N, D)"""
    if pooling == FIRST:
        return x[:, 0]
    return x.masked_fill(~mask[:, :, None], 0.0).sum(1) / lengths[:, None]


def pieces_of(texts: Texts) -> Pieces:
    """What such an encoder reads of texts."""
    assert texts.pieces is not None, "the texts were read without pieces"
    return texts.pieces


def counts_of(pieces: Pieces, L: int) -> Tensor:
    """How many pieces each of L words has, in double precision. (N, L)"""
    places = torch.where(pieces.words < 0, L, pieces.words)
    counts = torch.zeros(places.shape[0], L + 1, dtype=torch.float64, device=places.device)
    return counts.scatter_add(1, places, torch.ones_like(places, dtype=counts.dtype))[:, :L]
