"""Pairs into padded batches, in which each text stands once; padding is only ever behind a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from matchloom.data.features import pair_features
from matchloom.data.tokenized import Rows, TokenizedTexts
from matchloom.types import PairBatch


def make_batch(
    left: TokenizedTexts,
    right: TokenizedTexts,
    left_rows: Rows,
    right_rows: Rows,
    features: NDArray[np.float32] | None = None,
) -> PairBatch:
    """The batch of pairs (left[left_rows[b]], right[right_rows[b]]); a text in several pairs is padded in once.

    The pairs' features are made here, where the tables hold any, unless they are given.
    """
    left_texts, left_index = _first_places(left_rows)
    right_texts, right_index = _first_places(right_rows)
    if features is None:
        features = features_of(left, right, left_rows, right_rows)
    return PairBatch(
        left.pad(left_texts),
        right.pad(right_texts, right=True),
        torch.from_numpy(left_index),
        torch.from_numpy(right_index),
        None if features is None else torch.from_numpy(features),
    )


def features_of(
    left: TokenizedTexts, right: TokenizedTexts, left_rows: Rows, right_rows: Rows
) -> NDArray[np.float32] | None:
    """The features of many pairs at once (B, F); None where the tables were made without."""
    if left.features is None or right.features is None:
        return None
    return pair_features(left.features, right.features, left_rows, right_rows)


def distinct_pairs(left: Rows, right: Rows, features: NDArray[np.float32] | None) -> tuple[Rows, Rows]:
    """One place of each different pair (left row, right row, features), and for each pair its number among these."""
    codes: NDArray[Any] = left * (int(right.max(initial=0)) + 1) + right
    if features is not None and len(codes):
        wide = np.concatenate([codes[:, None].view(np.float32), features], axis=1)  # as bits, to be compared as such
        codes = np.ascontiguousarray(wide).view(np.dtype((np.void, wide.dtype.itemsize * wide.shape[1])))[:, 0]
    _, first, of_pair = np.unique(codes, return_index=True, return_inverse=True)
    return first, of_pair


def _first_places(rows: Rows) -> tuple[Rows, Rows]:
    """The different rows in order of first appearance (all different ones stay as they are), and each one's place."""
    found, first, places = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return found[order], ranks[places]


def deduplicate(texts: Sequence[str]) -> tuple[list[str], Rows]:
    """The distinct texts in order of first appearance, and for each given text its row among them."""
    rows: dict[str, int] = {}
    index = np.array([rows.setdefault(text, len(rows)) for text in texts], dtype=np.int64)
    return list(rows), index
