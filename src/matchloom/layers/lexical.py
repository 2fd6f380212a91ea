"""Exact matches as interaction slices, for models that are told to look at the words themselves too."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.onnx import is_in_onnx_export

from matchloom.batches import PairBatch
from matchloom.kernels import interact, native
from matchloom.layers.pooling import k_max

SLICES = ("same word", "same stem", "same start")
SUMS = 3  # signals that `match_sums` gives for each slice
_LONG = 40.0


def exact_matches(batch: PairBatch) -> Tensor:
    """For each slice the IDF of the left word where it meets the same word, stem or start. (B, 3, L, R)

    What stands several times on either side counts once, at its first places: k-max pooling then picks different
    words instead of one word's repetitions.
    """
    left, right = batch.left.lexical, batch.right.lexical
    assert left is not None, "the batch was made without lexical fields"
    assert right is not None, "the batch was made without lexical fields"
    ours, theirs = left.keys[batch.left_rows], right.keys[batch.right_rows]
    same = (ours[:, :, :, None] == theirs[:, :, None, :]) & batch.cells[:, None]
    same = same & (same.long().cumsum(3) == 1)  # ONNX adds up no truth values
    same = same & (same.long().cumsum(2) == 1)
    return same * left.idf[batch.left_rows][:, :, :, None]


def match_signals(batch: PairBatch, k: int) -> tuple[Tensor, Tensor]:
    """What is kept of each slice: its k largest IDFs (B, 3, k), and (B, 9) the sum of its IDFs, that sum by length of
    the right text, and that of their squares.

    Long texts hold many words by chance: they are discounted as in BM25. Squares give rare words more weight.
    """
    left, right = batch.left.lexical, batch.right.lexical
    assert left is not None, "the batch was made without lexical fields"
    assert right is not None, "the batch was made without lexical fields"
    if left.keys.device.type == "cpu" and not is_in_onnx_export() and native.library() is not None:
        found, sums = interact.exact_match_sums(left, right, batch, k)
        values, (total, squares) = found.to(left.idf.dtype), sums.to(left.idf.dtype).unbind(2)
    else:
        matches = exact_matches(batch)
        values = k_max(matches, batch.cells, k)[0]
        total, squares = matches.sum((2, 3)), matches.square().sum((2, 3))  # (B, 3)
    discount = length_discount(batch)[:, None]
    return values, torch.stack([total, total * discount, squares * discount], dim=2).flatten(1)


def length_discount(batch: PairBatch) -> Tensor:
    """1 / (1 + R / 40) for the R words of each right text. (B,)"""
    return 1 / (1 + batch.right.lengths[batch.right_rows] / _LONG)
