"""A ensemble: several networks of one kind that differ in their first weights, scoring by the mean of their scores.

What the chance of a first draw adds to one network's score is mostly gone from the mean. Each member learns by its own
loss, so that none leans on the others; the word vectors, the batches and the choice of the epoch are common to all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from matchloom.batches import PairBatch, Texts
from matchloom.data.tokenized import TokenizedTexts
from matchloom.models.base import PairModel
from matchloom.types import Component, Signal, Trace


class Ensemble(PairModel):
    """Members of one kind, over one encoder."""

    def __init__(self, members: Sequence[PairModel]) -> None:
        super().__init__()
        first = members[0]
        self.encoder = first.encoder
        for member in members:  # they know the encoder, but it is a part of the ensemble: saved and trained once
            del member.encoder
            member.__dict__["encoder"] = self.encoder
        self.members = nn.ModuleList(members)
        self.needs_lexical, self.needs_features = first.needs_lexical, first.needs_features
        self.trains_embedding, self.batch_coupled = first.trains_embedding, first.batch_coupled
        self.draws_at_random, self.max_words = first.draws_at_random, first.max_words
        self.least_words, self.not_exported = first.least_words, first.not_exported

    def each(self) -> list[PairModel]:
        """The members."""
        return [member for member in self.members if isinstance(member, PairModel)]

    def encode(self, texts: Texts) -> Tensor:
        """What each member makes of a text, side by side. (N, members, ...)"""
        return torch.stack([member.encode(texts) for member in self.each()], dim=1)

    def encode_right(self, texts: Texts) -> Tensor:
        """The same for texts of the right side."""
        return torch.stack([member.encode_right(texts) for member in self.each()], dim=1)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """The mean of the members' scores. (B,)"""
        scores = [member.match(left[:, n], right[:, n], batch) for n, member in enumerate(self.each())]
        return torch.stack(scores).mean(0)

    def outputs(self, batch: PairBatch) -> list[Tensor]:
        """The scores of each member."""
        return [member(batch) for member in self.each()]

    def trace(self, batch: PairBatch) -> list[Trace]:
        """The means of the members' maps and contributions, which add up to the mean of their scores."""
        return [mean_trace(traces) for traces in zip(*(member.trace(batch) for member in self.each()), strict=True)]

    def pretrain(
        self, left: TokenizedTexts, right: TokenizedTexts, pairs: NDArray[np.int64], seed: int, progress: bool
    ) -> None:
        """Each member sees the training texts, from a seed of its own."""
        for n, member in enumerate(self.each()):
            member.pretrain(left, right, pairs, seed + n, progress)

    def unrounded(self) -> PairModel:
        """The ensemble of the members that round nothing."""
        return Ensemble([member.unrounded() for member in self.each()])

    def decayed(self) -> list[nn.Parameter]:
        """What the members' say."""
        return [parameter for member in self.each() for parameter in member.decayed()]


def mean_trace(traces: Sequence[Trace]) -> Trace:
    """The mean of traces of one pair that have the same channels and components."""
    first, share = traces[0], 1 / len(traces)
    grid = np.mean([trace.grid for trace in traces], axis=0)
    cells: defaultdict[tuple[int, int, int], float] = defaultdict(float)
    for trace in traces:
        for i, j, c, _, contribution in trace.signals:
            cells[i, j, c] += contribution * share
    signals = [Signal(i, j, c, float(grid[c, i, j]), contribution) for (i, j, c), contribution in cells.items()]
    components = [
        Component(
            one.name, _mean(other.value for other in same), _mean(other.contribution for other in same), one.channel
        )
        for one, same in zip(first.components, zip(*(trace.components for trace in traces), strict=True), strict=True)
    ]
    score, residual = _mean(trace.score for trace in traces), _mean(trace.residual for trace in traces)
    return Trace(score, signals, residual, grid, first.channels, components)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
