"""ARC-I: convolutional architectures for matching natural language sentences (Hu et al., NIPS 2014).

Symbols      x_i -> word vectors;  z^(l) -> units after convolution and pooling l;  g -> the gate in layers/gated.py
Sizes        the paper's: windows of three, two convolutions, two poolings, a two-layer MLP, 200 maps (it tried 200 to
             500). It gives no size for the MLP: `units`. Sizes and gate are as later papers describe them; the original
             text was not at hand.
Departures   none in the network. It is the paper's with zeros behind a text far enough for every window that begins in
             the first `max_words` words: the representation has ceil(max_words / 2^layers) units, and those that a
             short text does not fill are 0. The paper takes the longest text of a task for that length; words behind
             the first `max_words` are not read. One convolutional network reads both sides, as in the Siamese networks
             that the paper names. `dropout` leaves out a part of the two vectors in training, and is off: what the
             paper did is not known here.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, pad

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.layers.contributions import word_traces
from matchloom.layers.gated import GatedConvolution, pairs_max
from matchloom.layers.heads import MLP
from matchloom.layers.interactions import gather_rows
from matchloom.models.base import ADAM, PairModel, Settings
from matchloom.types import MatchloomError, Trace


class ARCI(PairModel):
    """Convolution and pooling make a vector of each text; an MLP scores the two vectors.

    Args:
        maps: Feature maps of each convolution.
        window: Words, and then units, that a convolution reads at a time.
        layers: Convolutions, each followed by a pooling of two.
        max_words: Words of a text that are read.
        units: Hidden units of the MLP that scores the two vectors.
        dropout: Part of the two vectors that is dropped in training.
    """

    sentence_vectors = True
    trained_with: ClassVar[Settings] = {**ADAM, "margin": 0.1}  # with 1, one of two seeds learnt nothing on pydocs

    def __init__(
        self,
        encoder: Encoder,
        *,
        maps: int = 200,
        window: int = 3,
        layers: int = 2,
        max_words: int = 50,
        units: int = 50,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise MatchloomError(f"dropout of arc_i must be at least 0 and below 1, found {dropout}", code="bad_value")
        self.encoder, self.max_words = encoder, max_words
        self.dropout, self.draws_at_random = dropout, dropout > 0
        sizes = [encoder.size] + [maps] * layers
        self.layers = nn.ModuleList(GatedConvolution(sizes[n], maps, window) for n in range(layers))
        self.places = -(-max_words // 2**layers)
        self.head = MLP(2 * self.places * maps, units)

    def encode(self, texts: Texts) -> Tensor:
        """The vector of each text. (N, places * maps)"""
        return self.represent(self.encoder(texts), texts)

    def represent(self, x: Tensor, texts: Texts) -> Tensor:
        """Word vectors (N, L, D) into the vector of each text, (N, places * maps)."""
        z = (x * texts.mask[:, :, None])[:, : self.max_words]  # (N, L, D)             z^(0)
        for layer in self.layers:
            z = pairs_max(layer(z))  # (N, ceil(n / 2), maps)   z^(1), z^(2), ...
        return pad(z, (0, 0, 0, self.places - z.shape[1])).flatten(1)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        both = torch.cat([gather_rows(left, batch.left_rows), gather_rows(right, batch.right_rows)], 1)
        score: Tensor = self.head(dropout(both, self.dropout, self.training))
        return score

    def trace(self, batch: PairBatch) -> list[Trace]:
        """What each word adds: its vector times the score's slope along it.

        That is exact, for the network is linear around each pair's word vectors; the residual comes from biases. The
        texts meet only in the MLP, so that a cell of the map holds what its two words add (see `word_traces`).
        """
        sides = [side.take(rows) for side, rows in ((batch.left, batch.left_rows), (batch.right, batch.right_rows))]
        x = [self.encoder(side).detach().requires_grad_() for side in sides]
        rows = torch.arange(len(batch), device=batch.left_rows.device)
        with torch.enable_grad():
            left, right = (self.represent(*side) for side in zip(x, sides, strict=True))
            scores = self.match(left, right, PairBatch(sides[0], sides[1], rows, rows))
        slopes = torch.autograd.grad(scores.sum(), x)
        contributions = [(a.detach() * slope).sum(2) for a, slope in zip(x, slopes, strict=True)]
        return word_traces(batch, scores.detach(), *contributions)
