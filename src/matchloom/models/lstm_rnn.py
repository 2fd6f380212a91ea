"""LSTM-RNN and Bi-LSTM-RNN: one vector for each text, compared by cosine (Palangi et al., 2015).

Symbols      h_m, h_n -> the state at each text's own last word;  s = cos(h_m, h_n)
Departures   trained with the losses of this package, as MV-LSTM's authors did, not with click-through softmax.
             `head="mlp"` is what MV-LSTM's authors published as this baseline: s = W_s relu(W_r [h_m ; h_n] + b_r) +
             b_s, of states as they are. `forget` is the first bias of the forget gates. `features` adds a score of
             features of the pair ("overlap" or "pair"), which the paper does not have.

Both are MV-LSTM with a single position: LSTM-RNN matches the last one, Bi-LSTM-RNN the last of the forward and the
first of the backward direction.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.layers.features import FeatureScore
from matchloom.layers.heads import MLP, head_slopes, init_uniform_
from matchloom.layers.interactions import gather_rows
from matchloom.layers.recurrence import LSTM
from matchloom.models.base import PairModel
from matchloom.types import MatchloomError, Signal, Trace

HEADS = ("cosine", "mlp")


class LSTMRNN(PairModel):
    """Cosine of the last states of one LSTM, or of two that read in opposite directions; or an MLP over them."""

    sentence_vectors = True
    single_precision = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        hidden: int = 50,
        head: str = "cosine",
        units: int = 50,
        forget: float = 0.0,
        features: str = "",
        bidirectional: bool = False,
    ) -> None:
        super().__init__()
        if head not in HEADS:
            raise MatchloomError(f"head {head!r} is unknown; choose one of {', '.join(HEADS)}", code="unknown_name")
        self.encoder, self.needs_features = encoder, features
        self.features = FeatureScore(features, encoder)
        self.needs_lexical = self.features.needs_lexical
        self.channels = ["forward", "backward"] if bidirectional else ["forward"]
        self.readers = nn.ModuleList(LSTM(encoder.size, hidden, reverse=name == "backward") for name in self.channels)
        self.head = MLP(2 * len(self.channels) * hidden, units) if head == "mlp" else None
        init_uniform_(self)
        if forget:
            for reader in self.readers:
                nn.init.constant_(reader.lstm.bias_ih_l0[hidden : 2 * hidden], forget)  # type: ignore[index,union-attr]

    def states(self, texts: Texts) -> tuple[Tensor, Tensor]:
        """States of each direction (N, directions, L, H), and where each ends. For cosines they are divided by the
        length of the text's vector."""
        x = self.encoder.distinct(texts)
        states = torch.stack([read(x, texts.lengths) for read in self.readers], dim=1)
        # The forward direction ends at the last word, the backward one at the first.
        ends = torch.stack([texts.lengths - 1, torch.zeros_like(texts.lengths)], dim=1)[:, : len(self.channels)]
        if self.head is not None:
            return states, ends
        last = self.at(states, ends)  # (N, directions, H)
        return states / last.flatten(1).norm(dim=1).clamp_min(1e-12)[:, None, None, None], ends

    @staticmethod
    def at(states: Tensor, ends: Tensor) -> Tensor:
        """states[n, d, ends[n, d]]. (N, directions, H)"""
        return states.gather(2, ends[:, :, None, None].expand(-1, -1, 1, states.shape[3]))[:, :, 0]

    def encode(self, texts: Texts) -> Tensor:
        """The vector of each text, L2-normalised for cosines. (N, directions * H)"""
        return self.at(*self.states(texts)).flatten(1)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        u, v = gather_rows(left, batch.left_rows), gather_rows(right, batch.right_rows)
        score = (u * v).sum(1) if self.head is None else self.head(torch.cat([u, v], 1))
        return score + self.features(batch)  # type: ignore[no-any-return]

    def trace(self, batch: PairBatch) -> list[Trace]:
        """The products of all positions; only the last of each direction took part, and its contribution is exact.

        An MLP is linear around the two states: what they add stands at the cell where they end, and its bias apart.
        """
        components = self.features.trace(batch)
        with torch.no_grad():
            added = (torch.zeros(len(batch), device=self.encoder.device) + self.features(batch)).tolist()
            left, left_ends = self.states(batch.left)
            right, right_ends = self.states(batch.right)
            parts = self._parts(self.at(left, left_ends), self.at(right, right_ends), batch)
            traces = []
            for b, (x, y) in enumerate(zip(batch.left_rows.tolist(), batch.right_rows.tolist(), strict=True)):
                L, R = int(batch.left.lengths[x]), int(batch.right.lengths[y])
                grid = (left[x] @ right[y].transpose(1, 2))[:, :L, :R]  # (directions, L, R)
                signals = []
                for c, (i, j) in enumerate(zip(left_ends[x].tolist(), right_ends[y].tolist(), strict=True)):
                    value = float(grid[c, i, j])
                    signals.append(Signal(i, j, c, value, value if parts is None else float(parts[1][b, c])))
                explained = sum(signal.contribution for signal in signals)
                score = (explained if parts is None else float(parts[0][b])) + added[b]
                residual = score - explained - sum(component.contribution for component in components[b])
                traces.append(
                    Trace(score, signals, residual, grid.cpu().numpy().copy(), list(self.channels), components[b])
                )
        return traces

    def _parts(self, left: Tensor, right: Tensor, batch: PairBatch) -> tuple[Tensor, Tensor] | None:
        """With an MLP the scores (B,), and what both sides' states of each direction add. (B, directions)"""
        if self.head is None:
            return None
        q = torch.stack([gather_rows(left, batch.left_rows), gather_rows(right, batch.right_rows)], 1)  # (B, 2, d, H)
        scores, slopes = head_slopes(self.head, q.flatten(1))
        return scores, (q * slopes.view_as(q)).sum((1, 3))


def bi_lstm_rnn(
    encoder: Encoder,
    *,
    hidden: int = 50,
    head: str = "cosine",
    units: int = 50,
    forget: float = 0.0,
    features: str = "",
) -> LSTMRNN:
    """Bi-LSTM-RNN: both directions.

    Args:
        hidden: Size of the LSTM's states in each direction; a text's vector has twice as many numbers.
        head: What compares the two vectors: cosine or mlp.
        units: Hidden units of the MLP.
        forget: The first bias of the forget gates; 0 draws it like all else.
        features: Add a score of features of the pair: overlap, pair or paraphrase; empty for none.
    """
    return LSTMRNN(encoder, hidden=hidden, head=head, units=units, forget=forget, features=features, bidirectional=True)


def lstm_rnn(
    encoder: Encoder,
    *,
    hidden: int = 50,
    head: str = "cosine",
    units: int = 50,
    forget: float = 0.0,
    features: str = "",
) -> LSTMRNN:
    """LSTM-RNN: one direction.

    Args:
        hidden: Size of the LSTM's states, and so of a text's vector.
        head: What compares the two vectors: cosine or mlp.
        units: Hidden units of the MLP.
        forget: The first bias of the forget gates; 0 draws it like all else.
        features: Add a score of features of the pair: overlap, pair or paraphrase; empty for none.
    """
    return LSTMRNN(encoder, hidden=hidden, head=head, units=units, forget=forget, features=features)
