"""Late interaction: each query word and its best partners, ColBERT's MaxSim (Khattab & Zaharia, SIGIR 2020).

Symbols      E_q, E_d -> left, right (L2-normalised positions);  E_q E_d' -> cosines;
             c_i1 >= c_i2 >= ... -> best, the k largest cosines of query word i;  g_i -> gates, which add up to one
             score = sum over i of g_i (w_1 c_i1 + ... + w_k c_ik + u' e_i),   g = softmax over i of a'q_i
             e_i -> what word i finds exactly: the same word, stem or start
Start        w = (20, 0, ..., 0), a = 0 and u = 0: every query word counts alike and only its best partner counts. The
             score is 20 times MaxSim's mean, whatever k, and needs no training.
Departures   MaxSim adds up over the query's positions and ours is a mean, so that scores of a short and a long query
             can be compared; no order within a query's list changes. Its masks that lengthen a query are left out, and
             so are the marks around a text, which belong to no word. k, the gates and the exact matches are ours. A
             query's word that the encoder did not read, as the text was cut before it, has no part in the mean.
             Positions are projected (ColBERT: always, to 128 numbers) where the encoder has more than `size`; the
             matrix starts at the principal directions of the training texts' positions, and does without training.
             Scores are computed from positions of eight bits (layers/int8_positions.py); where gradients are asked for,
             which is in training, positions are not rounded.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from matchloom.batches import PairBatch, Texts
from matchloom.data.tokenized import TokenizedTexts
from matchloom.encoders.base import Encoder
from matchloom.layers.int8_positions import int8_cosines, quantised, unit_positions, was_read
from matchloom.layers.interactions import Cosine, gather_rows
from matchloom.layers.lexical import SLICES, exact_matches
from matchloom.layers.principal_directions import principal_directions
from matchloom.models.base import ADAM, PairModel
from matchloom.traces import grid_trace
from matchloom.types import MatchloomError, Trace

SCALE = 20.0  # at which a softmax over cosines is neither flat nor all at one


class LateInteraction(PairModel):
    """Each query word's best partners by cosine, weighted by a learned gate of the word; untrained it is MaxSim.

    Args:
        k: How many of the best partners of each query word count.
        size: Numbers of a position: an encoder with more is projected to so many by a learned matrix.
        lexical: Also count exact matches of each query word (word, stem, first letters), weighted by rarity.
        bits: Of each number of a position that is scored or stored, 8 or 32; training does not round.
    """

    trained_with = ADAM

    def __init__(self, encoder: Encoder, *, k: int = 3, size: int = 1024, lexical: bool = False, bits: int = 8) -> None:
        super().__init__()
        if bits not in (8, 32):
            raise MatchloomError(f"argument bits of late_interaction must be 8 or 32, found {bits}", code="bad_value")
        self.bits = bits
        self.stored_positions = bits == 8 and not lexical  # else a match asks for the words as well
        self.encoder, self.k, self.needs_lexical = encoder, k, lexical
        self.least_words = k
        self.interaction = Cosine()
        self.projection: nn.Linear | None = None
        width = encoder.size
        if width > size:
            self.projection = nn.Linear(width, size, bias=False)
            nn.init.orthogonal_(self.projection.weight)  # cosines stay near to what they were
            width = size
        self.a = nn.Parameter(torch.zeros(width))
        self.w = nn.Parameter(torch.tensor([SCALE, *[0.0] * (k - 1)]))
        self.u = nn.Parameter(torch.zeros(len(SLICES))) if lexical else None
        self.channels = ["cosine", *(SLICES if lexical else ())]

    def encode(self, texts: Texts) -> Tensor:
        """E: an L2-normalised vector for every word (N, L, D); or int8 with its length behind (N, L, D + 4)."""
        x = self.encoder(texts)
        if self.projection is not None:
            x = self.projection(x)
        if self.bits == 32 or torch.is_grad_enabled():
            return self.interaction.prepare(x)
        return quantised(x, self.encoder.seen(texts))

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        best, _ = self.best(self.cosines(left, right, batch))  # (B, L, k)
        found = best @ self.w[: best.shape[2]]  # (B, L)
        if self.u is not None:
            found = found + (exact_matches(batch).sum(3) * self.u[:, None]).sum(1)
        return (self.gates(left, batch) * found).sum(1)

    def cosines(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """E_q E_d', -inf where either word was not read. (B, L, R)"""
        if left.dtype == torch.int8:
            return int8_cosines(left, right, batch, self.w.dtype)
        cosines = self.interaction(left, right, batch)[:, 0]
        seen = [self.encoder.seen(side) for side in (batch.left, batch.right)]
        cells = seen[0][batch.left_rows][:, :, None] & seen[1][batch.right_rows][:, None, :]
        return cosines.masked_fill(~cells, -torch.inf)  # type: ignore[no-any-return]

    def best(self, cosines: Tensor) -> tuple[Tensor, Tensor]:
        """The k largest of each row and their places, no more than there are columns; 0 where a row has fewer."""
        if self.k == 1:
            values, places = cosines.max(2, keepdim=True)  # several times as fast
        else:
            values, places = cosines.topk(min(self.k, cosines.shape[2]), dim=2)
        return values.masked_fill(values == -torch.inf, 0.0), places

    def gates(self, left: Tensor, batch: PairBatch) -> Tensor:
        """g: the weight of each query word; all 0 where none was read. (B, L)"""
        if left.dtype == torch.int8:
            seen, left = was_read(left), unit_positions(left, self.a.dtype)
        else:
            seen = self.encoder.seen(batch.left)
        logits = (left @ self.a).masked_fill(~seen, torch.finfo(left.dtype).min)
        raised = torch.exp(logits - logits.amax(1, keepdim=True)) * seen
        gates = raised / raised.sum(1, keepdim=True).clamp_min(torch.finfo(left.dtype).tiny)
        return gather_rows(gates, batch.left_rows)

    def unrounded(self) -> LateInteraction:
        """With positions as they are."""
        other = copy.copy(self)
        other.bits, other.stored_positions = 32, False
        return other

    def pretrain(
        self, left: TokenizedTexts, right: TokenizedTexts, pairs: NDArray[np.int64], seed: int, progress: bool
    ) -> None:
        """Let the projection start where it keeps most of the positions of these texts."""
        if self.projection is None:
            return
        encoder, training = self.encoder, self.encoder.training
        size = self.projection.out_features
        encoder.eval()  # the whole of a text, nothing dropped
        found = principal_directions(
            encoder, encoder.seen, (left, right), size, seed=seed, device=encoder.device, progress=progress
        )
        encoder.train(training)
        with torch.no_grad():
            self.projection.weight.copy_(found)

    def trace(self, batch: PairBatch) -> list[Trace]:
        """The cosines and exact matches; each that counts adds its weight times its word's gate, and nothing else."""
        with torch.no_grad():
            left, right = self.encode(batch.left), self.encode(batch.right)
            cosines = self.cosines(left, right, batch)
            best, places = self.best(cosines)
            gates = self.gates(left, batch)[:, :, None]
            grid = torch.where(cosines == -torch.inf, 0.0, cosines)[:, None]  # (B, 1, L, R)
            added = torch.zeros_like(cosines).scatter(2, places, gates * best * self.w[: best.shape[2]])[:, None]
            if self.u is not None:
                matches = exact_matches(batch)
                grid = torch.cat([grid, matches], 1)
                added = torch.cat([added, matches * self.u[:, None, None] * gates[:, None]], 1)
            scores = self.match(left, right, batch)
        sizes = zip(scores.tolist(), *map(Tensor.tolist, batch.sizes), strict=True)
        return [
            grid_trace(score, grid[b, :, :L, :R], added[b, :, :L, :R], self.channels)
            for b, (score, L, R) in enumerate(sizes)
        ]
