"""Texts as flat arrays of what a reader made of them, from which padded batches are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matchloom.data.features import FeatureTexts

Rows = NDArray[np.int64]
NO_WORD = -1  # the lexical key of a text without words


@dataclass(frozen=True)
class Ragged:
    """A number for each position of each text, texts laid end to end."""

    flat: NDArray[np.int64]
    lengths: Rows

    @cached_property
    def starts(self) -> Rows:
        """Where each text begins."""
        return np.cumsum(self.lengths) - self.lengths

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]]) -> Ragged:
        """Whole numbers, a list for each text."""
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        return cls(np.array([x for text in texts for x in text], dtype=np.int64), lengths)


@dataclass(frozen=True)
class TokenizedTexts:
    """Different texts as a reader gives them. A text without a word is one unknown word that matches nothing exactly.

    `lexical` and `features` are there for models that ask for them, `pieces` for encoders that read pieces.
    """

    words: Ragged
    lexical: tuple[NDArray[np.int64], NDArray[np.float32]] | None = None  # keys and IDF of each word's faces, flat
    features: FeatureTexts | None = None
    pieces: tuple[Ragged, Ragged] | None = None  # ids, and the word of each

    def __len__(self) -> int:
        return len(self.words.lengths)

    @property
    def lengths(self) -> Rows:
        """How many words each text has."""
        return self.words.lengths

    @property
    def read_lengths(self) -> Rows:
        """How many positions of each text an encoder reads: its pieces, or its words where there are none."""
        return self.words.lengths if self.pieces is None else self.pieces[0].lengths

    def word_ids(self, row: int) -> NDArray[np.int64]:
        """The ids of one text's words."""
        start = int(self.words.starts[row])
        return self.words.flat[start : start + int(self.lengths[row])]

    @cached_property
    def same(self) -> Rows:
        """For each text the first row whose positions are the same: to a model such texts ("X", "X !") are one text.

        The features of pairs see more than positions, capitals for one, and are compared for themselves.
        """
        read = [(self.words, self.words.flat)]
        if self.lexical is not None:
            read.append((self.words, self.lexical[0]))
        if self.pieces is not None:
            read += [(ragged, ragged.flat) for ragged in self.pieces]
        cut = [list(zip(ragged.starts, ragged.starts + ragged.lengths, strict=True)) for ragged, _ in read]
        first: dict[tuple[bytes, ...], int] = {}
        found = [
            first.setdefault(tuple(flat[slice(*at)].tobytes() for (_, flat), at in zip(read, places, strict=True)), n)
            for n, places in enumerate(zip(*cut, strict=True))
        ]
        return np.array(found, dtype=np.int64)


def deduplicate(texts: Sequence[str]) -> tuple[list[str], Rows]:
    """The distinct texts in order of first appearance, and for each given text its row among them."""
    rows: dict[str, int] = {}
    index = np.array([rows.setdefault(text, len(rows)) for text in texts], dtype=np.int64)
    return list(rows), index
