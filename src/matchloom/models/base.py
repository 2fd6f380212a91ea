"""The one base class: what a model owes to training, the matcher and explanations."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from matchloom.types import PairBatch, Texts, Trace


class PairModel(nn.Module, ABC):
    """A network that scores pairs of texts. `needs_lexical` asks for the batch's lexical fields.

    Where `needs_vectors` is False the word vectors take no part in the score, and training leaves them alone.
    """

    needs_lexical = False
    needs_vectors = True
    embedding: nn.Embedding

    @abstractmethod
    def encode(self, texts: Texts) -> Tensor:
        """Represent each text on its own, first dimension N; a text that occurs in many pairs is encoded once.

        A model whose two sides differ reads left texts here, and right ones in `encode_right`.
        """

    def encode_right(self, texts: Texts) -> Tensor:
        """Represent texts of the right side: as those of the left, unless a model says otherwise."""
        return self.encode(texts)

    @abstractmethod
    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,) of the pairs of a batch from the encodings of its left and right texts."""

    @abstractmethod
    def trace(self, batch: PairBatch) -> list[Trace]:
        """Why each pair got its score, from the same interactions that `match` uses."""

    def forward(self, batch: PairBatch) -> Tensor:
        """Match each pair of the batch. Returns scores (B,)."""
        return self.match(self.encode(batch.left), self.encode_right(batch.right), batch)
