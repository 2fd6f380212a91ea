"""Texts into padded batches. Each distinct text is tokenised once; padding is only ever behind a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from matchloom.data.features import FeatureTexts, pair_features
from matchloom.progress import track
from matchloom.text.tokenize import Tokenizer, stem, word_hash
from matchloom.text.vocab import UNKNOWN, Vocab
from matchloom.types import Lexical, PairBatch, Texts

Rows = NDArray[np.int64]


class TokenizedTexts:
    """Distinct texts as flat arrays of word ids, from which batches are cut.

    A text without a word is held as one unknown word that matches nothing exactly. With the name of a feature set
    in `features` the table also holds what the features of its texts' pairs are made of.
    """

    def __init__(
        self,
        texts: Sequence[str],
        vocab: Vocab,
        tokenizer: Tokenizer,
        *,
        lexical: bool = False,
        features: str = "",
        progress: bool = False,
    ) -> None:
        words = [tokenizer(text) for text in track(texts, "reading texts", show=progress)]
        self.lengths = np.array([max(1, len(w)) for w in words], dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])[:-1]
        self.ids = _flat([vocab.ids(w) or [UNKNOWN] for w in words], np.int64)
        self.features = FeatureTexts(features, texts, vocab, tokenizer) if features else None
        self.lexical: tuple[NDArray[np.int64], NDArray[np.float32]] | None = None
        if lexical:
            faces: dict[str, list[tuple[int, float]]] = {}
            for word in {word for w in words for word in w}:
                s = stem(word)
                idf = vocab.stem_idf(s)
                faces[word] = [(word_hash(word), vocab.idf(word)), (word_hash(s), idf), (word_hash(word[:4]), idf)]
            # Hashes are positive; -1 - row is a word of its own in every wordless text.
            flat = [face for n, w in enumerate(words) for face in ([faces[x] for x in w] or [[(-1 - n, 0.0)] * 3])]
            self.lexical = (
                np.array([[key for key, _ in face] for face in flat], dtype=np.int64),
                np.array([[idf for _, idf in face] for face in flat], dtype=np.float32),
            )

    def __len__(self) -> int:
        return len(self.lengths)

    def pad(self, rows: Rows) -> Texts:
        """The texts of these rows, padded to the longest of them."""
        lengths = self.lengths[rows]
        positions = np.arange(lengths.max())
        valid = positions < lengths[:, None]  # (N, L)
        places = np.where(valid, self.starts[rows][:, None] + positions, 0)

        words = torch.from_numpy(np.where(valid, self.ids[places], 0))
        lexical = None
        if self.lexical is not None:
            keys, idf = (torch.from_numpy(flat[places]).transpose(1, 2) for flat in self.lexical)
            lexical = Lexical(keys, idf)
        return Texts(words, torch.from_numpy(lengths), lexical)


def _flat(lists: list[list[int]], dtype: type[np.int64]) -> NDArray[np.int64]:
    return np.array([x for row in lists for x in row], dtype=dtype)


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
        right.pad(right_texts),
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
