"""What a network reads: texts as padded tensors, and batches of pairs over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

_MORE = 1.5  # as many words, at most, may the longer side have for both to be read at once


@dataclass(frozen=True)
class Lexical:
    """What exact matching needs to know of each position; a model asks for it with `needs_lexical`.

    Each word has three faces: itself, its stem, and its first four letters. Keys are hashes, so that words which the
    vocabulary does not know match too. A Chinese word has one face: the others are the word again, and have weight 0.
    """

    keys: Tensor  # (N, 3, L) int64
    idf: Tensor  # (N, 3, L) float32, scaled so that a word seen nowhere has weight 1

    def to(self, device: torch.device) -> Lexical:
        """The same on a device."""
        return Lexical(self.keys.to(device), self.idf.to(device))

    def double(self) -> Lexical:
        """The same with weights in double precision."""
        return Lexical(self.keys, self.idf.double())


@dataclass(frozen=True)
class Pieces:
    """The subword pieces of N texts, for encoders that read them; there are P of them in the longest text.

    `words` leads back: pieces of one word share its position. Marks that belong to no word (the ends of a text) have -1
    there, and so has padding, which lies behind a text's own lengths[n] pieces.
    """

    ids: Tensor  # (N, P) int64
    words: Tensor  # (N, P) int64
    lengths: Tensor  # (N,) int64

    @property
    def mask(self) -> Tensor:
        """True where there is a piece. (N, P)"""
        return torch.arange(self.ids.shape[1], device=self.ids.device) < self.lengths[:, None]

    def to(self, device: torch.device) -> Pieces:
        """The same on a device."""
        return Pieces(self.ids.to(device), self.words.to(device), self.lengths.to(device))


class DistinctWords(NamedTuple):
    """The vectors of all positions, each distinct word's once: position l of text n has vectors[rows[n, l]]."""

    vectors: Tensor  # (U, size)
    rows: Tensor  # (N, L) int64

    def spread(self) -> Tensor:
        """One vector for each position. (N, L, size)"""
        return self.vectors.index_select(0, self.rows.flatten()).view(*self.rows.shape, -1)


@dataclass(frozen=True)
class Texts:
    """N different texts, padded to the longest. Row n has lengths[n] words; what lies behind is padding (id 0).

    Lengths, masks, cells and explanations count words, whatever an encoder reads.
    """

    words: Tensor  # (N, L) int64
    lengths: Tensor  # (N,) int64
    lexical: Lexical | None = None
    pieces: Pieces | None = None

    def take(self, rows: Tensor) -> Texts:
        """The texts of these rows, in their order."""
        lexical = None if self.lexical is None else Lexical(self.lexical.keys[rows], self.lexical.idf[rows])
        pieces = self.pieces
        if pieces is not None:
            pieces = Pieces(pieces.ids[rows], pieces.words[rows], pieces.lengths[rows])
        return Texts(self.words[rows], self.lengths[rows], lexical, pieces)

    @property
    def mask(self) -> Tensor:
        """True where there is a word. (N, L)"""
        return torch.arange(self.words.shape[1], device=self.words.device) < self.lengths[:, None]

    def to(self, device: torch.device) -> Texts:
        """The same on a device."""
        lexical = None if self.lexical is None else self.lexical.to(device)
        pieces = None if self.pieces is None else self.pieces.to(device)
        return Texts(self.words.to(device), self.lengths.to(device), lexical, pieces)

    def double(self) -> Texts:
        """The same for a model in double precision."""
        return Texts(self.words, self.lengths, None if self.lexical is None else self.lexical.double(), self.pieces)


@dataclass(frozen=True)
class PairBatch:
    """B pairs over two sets of texts: pair b is left text left_rows[b] and right text right_rows[b].

    A text that occurs in several pairs (the query of a candidate list) stands, and is encoded, once.
    `features` are there for models that ask for a feature set of the pair with `needs_features`.
    """

    left: Texts
    right: Texts
    left_rows: Tensor  # (B,) int64
    right_rows: Tensor  # (B,) int64
    features: Tensor | None = None  # (B, F) float32

    def __len__(self) -> int:
        return len(self.left_rows)

    def to(self, device: torch.device) -> PairBatch:
        """The same on a device."""
        rows = (self.left_rows.to(device), self.right_rows.to(device))
        features = None if self.features is None else self.features.to(device)
        return PairBatch(self.left.to(device), self.right.to(device), *rows, features)

    def double(self) -> PairBatch:
        """The same for a model in double precision."""
        features = None if self.features is None else self.features.double()
        return PairBatch(self.left.double(), self.right.double(), self.left_rows, self.right_rows, features)

    def joined(self) -> PairBatch | None:
        """The same pairs over one set of texts, left ones before right ones, with their words alone.

        What reads both sides alike reads them at once so. None where texts are read as pieces, or where one side is so
        much shorter that its padding would cost more than that saves.
        """
        sides = (self.left, self.right)
        most = max(side.words.shape[1] for side in sides)
        if any(side.pieces is not None or _MORE * side.words.shape[1] < most for side in sides):
            return None
        words = torch.cat([pad(side.words, (0, most - side.words.shape[1])) for side in sides])
        both = Texts(words, torch.cat([side.lengths for side in sides]))
        return PairBatch(both, both, self.left_rows, self.right_rows + len(self.left.words))

    @property
    def sizes(self) -> tuple[Tensor, Tensor]:
        """m and n of each pair: how many words its texts have. (B,), (B,)"""
        return self.left.lengths[self.left_rows], self.right.lengths[self.right_rows]

    @property
    def cells(self) -> Tensor:
        """True where both the left and the right position hold a word. (B, L, R)"""
        return self.left.mask[self.left_rows][:, :, None] & self.right.mask[self.right_rows][:, None, :]
