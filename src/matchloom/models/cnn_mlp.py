"""CNN+MLP: the sentence vectors of CNTN, scored by an MLP (a baseline of Qiu and Huang, IJCAI 2015).

Symbols      v_q, v_a -> sentence vectors;  s = W_s relu(W_r [v_q ; v_a] + b_r) + b_s
Departures   those of cntn.py's CNN. The paper gives neither the size nor the function of the MLP's hidden layer:
             `units` and relu. W_r starts by Glorot's rule times sqrt(n_s), because its inputs are L2-normalised.
             Before training, the sentence vectors are spread: mean 0 and variance 1 of each number over a sample of the
             training texts (`pretrain`). Without it they all start near one another, no unit of the MLP bends between
             them, and a score is a sum of what question and answer say alone: with few lists training then ended in a
             constant (pydocs, three seeds of three).

An explanation has one contribution for each word, by way of the values that survived pooling. Words of different texts
meet only in the MLP, where nothing tells which two: a cell of the map holds what its two words add (see `word_traces`).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from matchloom.basics.arrays import distinct
from matchloom.batches import PairBatch, Texts
from matchloom.data.batching import pad_texts
from matchloom.data.tokenized import TokenizedTexts
from matchloom.encoders.base import Encoder
from matchloom.layers.contributions import additive_traces
from matchloom.layers.heads import MLP, head_slopes, init_linear_
from matchloom.layers.interactions import gather_rows
from matchloom.layers.sentence_cnn import SentenceCNN
from matchloom.models.base import ADAM, PairModel
from matchloom.types import Trace

SPREAD_BY = 1000  # texts of each side


class CNNMLP(PairModel):
    """A CNN for each side makes sentence vectors, and an MLP scores the two.

    Args:
        filters: Filters of each convolution.
        depth: Convolutions, one above the other.
        width: Words, and then columns, that a filter reads at a time.
        k_top: Columns that the last pooling keeps.
        sentence: Size of a sentence vector.
        units: Hidden units of the MLP that scores the two vectors.
    """

    sentence_vectors = True
    trained_with = ADAM

    def __init__(
        self,
        encoder: Encoder,
        *,
        filters: int = 50,
        depth: int = 3,
        width: int = 3,
        k_top: int = 4,
        sentence: int = 50,
        units: int = 50,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.query_cnn, self.text_cnn = (
            SentenceCNN(encoder.size, filters=filters, depth=depth, width=width, k_top=k_top, n_s=sentence)
            for _ in range(2)
        )
        self.head = MLP(2 * sentence, units)
        init_linear_(self.head.W_r, self.head.W_s)
        with torch.no_grad():
            # The rule is for inputs of variance 1. In L2-normalised vectors they have 1 / n_s; then scores are so near
            # to each other that training leads to a constant more often.
            self.head.W_r.weight *= sentence**0.5

    def pretrain(
        self, left: TokenizedTexts, right: TokenizedTexts, pairs: NDArray[np.int64], seed: int, progress: bool
    ) -> None:
        """Spread the sentence vectors of either side."""
        rng = np.random.default_rng(seed)
        for side, (cnn, table) in enumerate(((self.query_cnn, left), (self.text_cnn, right))):
            texts = pad_texts(table, rng.permutation(distinct(pairs[:, side]))[:SPREAD_BY]).to(
                self.head.W_r.weight.device
            )
            cnn.spread(self.encoder(texts), texts)

    def encode(self, texts: Texts) -> Tensor:
        """v_q of each text as a question, (N, n_s)."""
        return self.query_cnn(self.encoder(texts), texts)  # type: ignore[no-any-return]

    def encode_right(self, texts: Texts) -> Tensor:
        """v_a of each text as an answer, (N, n_s)."""
        return self.text_cnn(self.encoder(texts), texts)  # type: ignore[no-any-return]

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        score: Tensor = self.head(
            torch.cat([gather_rows(left, batch.left_rows), gather_rows(right, batch.right_rows)], 1)
        )
        return score

    def trace(self, batch: PairBatch) -> list[Trace]:
        """What each word adds."""
        left, c_q = self.query_cnn.components(self.encoder(batch.left), batch.left)
        right, c_a = self.text_cnn.components(self.encoder(batch.right), batch.right)
        v = torch.cat([gather_rows(left, batch.left_rows), gather_rows(right, batch.right_rows)], 1)
        return additive_traces(batch, *head_slopes(self.head, v), c_q, c_a)
