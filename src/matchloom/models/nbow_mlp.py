"""NBOW+MLP: each text is the sum of its word vectors, an MLP scores the two sums (a baseline of Qiu and Huang, 2015).

Symbols      v_q = sum of x_i, v_a = sum of y_j;  s = W_s relu(W_r [v_q ; v_a] + b_r) + b_s
Departures   the paper gives neither the size nor the function of the hidden layer: `units` and relu.

An explanation has one contribution for each word: the head is linear around each pair, and a word adds its vector to
it. No two words meet in this model, so that a cell of the map holds what its two words add (see `word_traces`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.layers.contributions import additive_traces
from matchloom.layers.heads import MLP, head_slopes, init_uniform_
from matchloom.layers.interactions import gather_rows
from matchloom.models.base import PairModel
from matchloom.types import Trace


class NBOWMLP(PairModel):
    """Sums of word vectors, scored by an MLP.

    Args:
        units: Hidden units of the MLP that scores the two sums.
    """

    sentence_vectors = True

    def __init__(self, encoder: Encoder, *, units: int = 50) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = MLP(2 * encoder.size, units)
        init_uniform_(self)

    def words(self, texts: Texts) -> Tensor:
        """The vectors of the words, 0 behind each text. (N, L, D)"""
        x: Tensor = self.encoder(texts) * texts.mask[:, :, None]
        return x

    def encode(self, texts: Texts) -> Tensor:
        """The sum of each text's word vectors. (N, D)"""
        return self.words(texts).sum(1)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        score: Tensor = self.head(
            torch.cat([gather_rows(left, batch.left_rows), gather_rows(right, batch.right_rows)], 1)
        )
        return score

    def trace(self, batch: PairBatch) -> list[Trace]:
        """What each word adds."""
        left, right = self.words(batch.left).detach(), self.words(batch.right).detach()
        v = torch.cat([gather_rows(left.sum(1), batch.left_rows), gather_rows(right.sum(1), batch.right_rows)], 1)
        return additive_traces(batch, *head_slopes(self.head, v), left, right)
