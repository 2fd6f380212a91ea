"""Sentence-BERT: one vector for each text, the mean of what the encoder made of it (Reimers & Gurevych, EMNLP 2019).

Symbols      u, v -> left, right: means over all pieces of a text, L2-normalised;  score = w cos(u, v)
Start        w = 20, at which a softmax over cosines is neither flat nor all at one. No training is needed: with the
             encoder that it was made for, this is the similarity which that encoder's card speaks of.
Departures   the paper trains a classifier on |u - v|, or cosines towards similarities; ours are trained with the losses
             of this package. Over word vectors it is the cosine of two means, with which the paper compares.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.layers.interactions import gather_rows
from matchloom.models.base import ADAM, PairModel
from matchloom.traces import grid_trace
from matchloom.types import Component, Trace

SCALE = 20.0


class SentenceBERT(PairModel):
    """The cosine of two texts' mean vectors. It has no arguments."""

    trained_with = ADAM
    sentence_vectors = True

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.w = nn.Parameter(torch.tensor(SCALE))

    def encode(self, texts: Texts) -> Tensor:
        """u: the mean of a text, L2-normalised. (N, D)"""
        return normalize(self.encoder.mean(texts), dim=1)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        cosines = (gather_rows(left, batch.left_rows) * gather_rows(right, batch.right_rows)).sum(1)
        return self.w * cosines

    def trace(self, batch: PairBatch) -> list[Trace]:
        """A cosine of means is a sum over pairs of words; what belongs to no word is told as one number."""
        with torch.no_grad():
            sides = [self._words(texts) for texts in (batch.left, batch.right)]
            scores = self(batch).tolist()
            w = float(self.w)
            traces = []
            for b, (x, y) in enumerate(zip(batch.left_rows.tolist(), batch.right_rows.tolist(), strict=True)):
                L, R = int(batch.left.lengths[x]), int(batch.right.lengths[y])
                grid = (sides[0][x, :L] @ sides[1][y, :R].T)[None]  # (1, L, R)
                rest = scores[b] - w * float(grid.sum())
                others = (
                    [Component("marks and punctuation", rest / w, rest, 0)] if self.encoder.vocabulary is None else []
                )
                traces.append(grid_trace(scores[b], grid, w * grid, ["cosine"], others))
        return traces

    def _words(self, texts: Texts) -> Tensor:
        """What each word adds to its text's vector. (N, L, D)"""
        x = self.encoder(texts)
        lengths = self.encoder.mean(texts).norm(dim=1).clamp_min(1e-12)
        return x * (self.encoder.shares(texts).to(x.dtype) / lengths[:, None])[:, :, None]  # type: ignore[no-any-return]
