"""Texts and pairs into padded tensors, in which each text stands once; padding is only ever behind a text."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from matchloom.batches import Lexical, PairBatch, Pieces, Texts
from matchloom.data.features import pair_features
from matchloom.data.tokenized import NO_WORD, Ragged, Rows, TokenizedTexts


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
        pad_texts(left, left_texts),
        pad_texts(right, right_texts, right=True),
        torch.from_numpy(left_index),
        torch.from_numpy(right_index),
        None if features is None else torch.from_numpy(features),
    )


def pad_texts(table: TokenizedTexts, rows: Rows, *, right: bool = False) -> Texts:
    """The texts of these rows, padded to the longest of them; `right` tells on which side of pairs they will be."""
    places, valid = _places(table.words, rows)
    words = torch.from_numpy(np.where(valid, table.words.flat[places], 0))
    lexical = None
    if table.lexical is not None:
        keys, idf = (torch.from_numpy(flat[places]).transpose(1, 2) for flat in table.lexical)
        # A text without words matches nothing, not even another one on the other side.
        lexical = Lexical(torch.where(keys == NO_WORD, NO_WORD - 1, keys) if right else keys, idf)
    pieces = None
    if table.pieces is not None:
        ids, of_word = table.pieces
        places, valid = _places(ids, rows)
        pieces = Pieces(
            torch.from_numpy(np.where(valid, ids.flat[places], 0)),
            torch.from_numpy(np.where(valid, of_word.flat[places], -1)),
            torch.from_numpy(ids.lengths[rows]),
        )
    return Texts(words, torch.from_numpy(table.lengths[rows]), lexical, pieces)


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


def _places(ragged: Ragged, rows: Rows) -> tuple[Rows, NDArray[np.bool_]]:
    """Where the positions of these texts stand in the flat array, 0 for padding, and which are none. (N, L) each"""
    lengths = ragged.lengths[rows]
    positions = np.arange(lengths.max())
    valid = positions < lengths[:, None]
    return np.where(valid, ragged.starts[rows][:, None] + positions, 0), valid
