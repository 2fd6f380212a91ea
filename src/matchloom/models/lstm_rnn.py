"""LSTM-RNN and Bi-LSTM-RNN: one vector for each text, compared by cosine (Palangi et al., 2015).

Symbols      h_m, h_n -> the state at each text's own last word;  s = cos(h_m, h_n)
Departures   trained with the losses of this package, as MV-LSTM's authors did, not with click-through softmax.
             `features` adds a score of features of the pair ("overlap" or "pair"), which the paper does not have.

Both are MV-LSTM with a single position: LSTM-RNN matches the last one, Bi-LSTM-RNN the last of the forward and the
first of the backward direction.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from matchloom.encoders import Encoder
from matchloom.layers.features import FeatureScore
from matchloom.layers.heads import init_uniform_
from matchloom.layers.interactions import gather_rows
from matchloom.layers.recurrence import LSTM
from matchloom.models.base import PairModel
from matchloom.types import PairBatch, Signal, Texts, Trace


class LSTMRNN(PairModel):
    """Cosine of the last states of one LSTM, or of two that read in opposite directions."""

    sentence_vectors = True

    def __init__(self, encoder: Encoder, *, hidden: int = 50, features: str = "", bidirectional: bool = False) -> None:
        super().__init__()
        self.encoder, self.needs_features = encoder, features
        self.features = FeatureScore(features, encoder)
        self.needs_lexical = self.features.needs_lexical
        self.channels = ["forward", "backward"] if bidirectional else ["forward"]
        self.readers = nn.ModuleList(LSTM(encoder.size, hidden, reverse=name == "backward") for name in self.channels)
        init_uniform_(self)

    def states(self, texts: Texts) -> tuple[Tensor, Tensor]:
        """States of each direction (N, directions, L, H), over the length of the text's vector, and where each ends."""
        x = self.encoder(texts)
        states = torch.stack([read(x, texts.lengths) for read in self.readers], dim=1)
        # The forward direction ends at the last word, the backward one at the first.
        ends = torch.stack([texts.lengths - 1, torch.zeros_like(texts.lengths)], dim=1)[:, : len(self.channels)]
        last = self.at(states, ends)  # (N, directions, H)
        return states / last.flatten(1).norm(dim=1).clamp_min(1e-12)[:, None, None, None], ends

    @staticmethod
    def at(states: Tensor, ends: Tensor) -> Tensor:
        """states[n, d, ends[n, d]]. (N, directions, H)"""
        return states.gather(2, ends[:, :, None, None].expand(-1, -1, 1, states.shape[3]))[:, :, 0]

    def encode(self, texts: Texts) -> Tensor:
        """The vector of each text, of length one. (N, directions * H)"""
        return self.at(*self.states(texts)).flatten(1)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Cosines (B,)."""
        cosines = (gather_rows(left, batch.left_rows) * gather_rows(right, batch.right_rows)).sum(1)
        return cosines + self.features(batch)  # type: ignore[no-any-return]

    def trace(self, batch: PairBatch) -> list[Trace]:
        """The products of all positions; only the last of each direction took part, and its contribution is exact."""
        components = self.features.trace(batch)
        with torch.no_grad():
            added = (torch.zeros(len(batch), device=self.encoder.device) + self.features(batch)).tolist()
            left, left_ends = self.states(batch.left)
            right, right_ends = self.states(batch.right)
            traces = []
            for b, (x, y) in enumerate(zip(batch.left_rows.tolist(), batch.right_rows.tolist(), strict=True)):
                L, R = int(batch.left.lengths[x]), int(batch.right.lengths[y])
                grid = (left[x] @ right[y].transpose(1, 2))[:, :L, :R]  # (directions, L, R)
                signals = []
                for c, (i, j) in enumerate(zip(left_ends[x].tolist(), right_ends[y].tolist(), strict=True)):
                    signals.append(Signal(i, j, c, float(grid[c, i, j]), float(grid[c, i, j])))
                score = sum(signal.contribution for signal in signals) + added[b]
                residual = added[b] - sum(component.contribution for component in components[b])
                traces.append(
                    Trace(score, signals, residual, grid.cpu().numpy().copy(), list(self.channels), components[b])
                )
        return traces


def bi_lstm_rnn(encoder: Encoder, *, hidden: int = 50, features: str = "") -> LSTMRNN:
    """Bi-LSTM-RNN: both directions.

    Args:
        hidden: Size of the LSTM's states in each direction; a text's vector has twice as many numbers.
        features: Add a score of features of the pair: overlap, pair or paraphrase; empty for none.
    """
    return LSTMRNN(encoder, hidden=hidden, features=features, bidirectional=True)


def lstm_rnn(encoder: Encoder, *, hidden: int = 50, features: str = "") -> LSTMRNN:
    """LSTM-RNN: one direction.

    Args:
        hidden: Size of the LSTM's states, and so of a text's vector.
        features: Add a score of features of the pair: overlap, pair or paraphrase; empty for none.
    """
    return LSTMRNN(encoder, hidden=hidden, features=features)
