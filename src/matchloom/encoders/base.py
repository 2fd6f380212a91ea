"""What models, matcher, training and archive know of an encoder."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from matchloom.batches import DistinctWords, Texts
from matchloom.data.reader import Reader, WordPieces
from matchloom.text.tokenize import Span, Tokenizer
from matchloom.text.vocab import Vocab


class Encoder(nn.Module, ABC):
    """One vector for every word of a text.

    size        numbers of a vector
    vocabulary  how many word ids it knows, for models that count words by their ids; None where it reads pieces
    draws_at_random  while it learns, a step of training draws at random in it (dropout), as for a model
    reads_pairs      it can read two texts as one (`together`)
    """

    size: int
    vocabulary: int | None = None
    draws_at_random: bool = False
    reads_pairs: bool = False

    @abstractmethod
    def forward(self, texts: Texts) -> Tensor:
        """The vectors of all positions, (N, L, size); what lies behind a text is meaningless."""

    def distinct(self, texts: Texts) -> Tensor | DistinctWords:
        """The same; or each word's vector once, where it is the same wherever the word stands and that saves work."""
        vectors: Tensor = self(texts)
        return vectors

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What a matcher's file keeps of it beside the weights: `kind`, a key of ENCODERS, and what that needs."""

    def seen(self, texts: Texts) -> Tensor:
        """True where there is a word that it has read: not where a long text was cut, nor in padding. (N, L)"""
        return texts.mask

    def mean(self, texts: Texts) -> Tensor:
        """The mean of all that it reads of each text. (N, size)"""
        x = self(texts)
        return (x * self.shares(texts).to(x.dtype)[:, :, None]).sum(1)  # type: ignore[no-any-return]

    def shares(self, texts: Texts) -> Tensor:
        """Which part of that mean each word has, in double precision. (N, L)"""
        return texts.mask / texts.lengths.double()[:, None]

    def together(self, left: Texts, right: Texts, links: Tensor | None = None) -> Tensor:
        """One vector for each row's two texts, read as one: that of the mark before them. (B, size)

        `links` (B, L, R) says how much a left and a right word may see of each other, from 0 to 1; None: all.
        """
        raise TypeError(f"{type(self).__name__} reads one text at a time")

    def word_pieces(self, text: str, words: Sequence[Span]) -> WordPieces:
        """A text as the pieces that this encoder reads, each with the word it belongs to, by the words' places."""
        raise TypeError(f"{type(self).__name__} reads words, not pieces")

    def reader(self, tokenizer: Tokenizer, vocab: Vocab) -> Reader:
        """What makes of texts the positions that this encoder takes."""
        return Reader(tokenizer, vocab, self.word_pieces if self.vocabulary is None else None)

    def learn(self, wanted: bool, *, layers: int = 0) -> None:
        """Say whether training moves it. `layers`: how many of a pretrained encoder's last layers learn; 0: all."""
        self.requires_grad_(wanted)

    def parts(self, decay: float) -> list[tuple[list[nn.Parameter], float]]:
        """The parameters that learn, each with the part of the encoder's rate that they learn at.

        With a `decay` below 1 each layer of a pretrained encoder has its own part.
        """
        learning = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return [(learning, 1.0)] if learning else []

    def in_double(self) -> Encoder:
        """The same in double precision, for scores that must not depend on the order in which something is summed."""
        return copy.deepcopy(self).double()

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return next(self.parameters()).device
