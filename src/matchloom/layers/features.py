"""Features of the pair beside a network: brought to one scale, and their contributions of a score."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from matchloom.batches import PairBatch, Texts
from matchloom.data.features import FEATURES
from matchloom.layers.heads import MLP
from matchloom.layers.interactions import dot
from matchloom.types import Component, MatchloomError

Encode = Callable[[Texts], Tensor]  # one vector a position
SOFT = ("soft coverage", "soft coverage by rarity")
UNITS = 16


def soft_coverage(encode: Encode, batch: PairBatch) -> Tensor:
    """For each left word its best cosine among the right words, their mean and their mean weighted by IDF. (B, 2)

    The same word counts 1 though it have no vector, and nothing counts less than 0. The positions are looked at,
    not trained, by this.
    """
    left, right = batch.left.lexical, batch.right.lexical
    assert left is not None, "the batch was made without lexical fields"
    assert right is not None, "the batch was made without lexical fields"
    with torch.no_grad():
        u, v = (normalize(encode(texts), dim=-1) for texts in (batch.left, batch.right))
        same = left.keys[batch.left_rows, 0][:, :, None] == right.keys[batch.right_rows, 0][:, None, :]
        cosines = dot(u, v, batch).masked_fill(same, 1.0).masked_fill(~batch.cells, 0.0)
        best = cosines.amax(2).clamp(0.0, 1.0)  # (B, L)
        mask = batch.left.mask[batch.left_rows].to(best.dtype)
        idf = left.idf[batch.left_rows, 0] * mask
        by_rarity = (best * idf).sum(1) / idf.sum(1).clamp_min(1e-12)
        return torch.stack([(best * mask).sum(1) / mask.sum(1), by_rarity], dim=1)


class PairFeatures(nn.Module):
    """A feature set of the batch on one scale: (x - mean) / deviation, of the training pairs once `fit` has seen them.

    `pair` has the soft coverage of the model's own positions too; it lies between 0 and 1 whatever the data, and
    .5 and .25 stand for its mean and deviation. The set "" has no features.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, name: str, encode: Encode) -> None:
        super().__init__()
        if name and name not in FEATURES:
            raise MatchloomError(
                f"features {name!r} are unknown; choose one of {', '.join(FEATURES)}, or none", code="unknown_name"
            )
        self.needs_lexical = name == "pair"
        self.names = (*FEATURES.get(name, ()), *(SOFT if self.needs_lexical else ()))
        self._encode = [encode]  # in a list: it is the model's, not a part of this layer
        if self.names:
            fixed = len(SOFT) if self.needs_lexical else 0
            size = len(self.names) - fixed
            self.register_buffer("mean", torch.tensor([0.0] * size + [0.5] * fixed))
            self.register_buffer("deviation", torch.tensor([1.0] * size + [0.25] * fixed))

    def fit(self, features: Tensor) -> None:
        """Take mean and deviation from the features of all training pairs, (pairs, F)."""
        deviation, mean = torch.std_mean(features.double(), dim=0, correction=0)
        self.mean[: len(mean)] = mean
        self.deviation[: len(mean)] = torch.where(deviation > 1e-6, deviation, 1.0)  # a constant stays at 0

    def raw(self, batch: PairBatch) -> Tensor:
        """The features as they are. (B, F)"""
        assert batch.features is not None, "the batch was made without features"
        features = batch.features.to(self.mean.dtype)
        if self.needs_lexical:
            features = torch.cat([features, soft_coverage(self._encode[0], batch).to(features.dtype)], dim=1)
        return features

    def forward(self, batch: PairBatch) -> Tensor:
        """The features on one scale. (B, F)"""
        return (self.raw(batch) - self.mean) / self.deviation

    def components(self, batch: PairBatch, scaled: Tensor, slopes: Tensor) -> list[list[Component]]:
        """Each feature's value and contribution: how far it is from the mean, times the slope of the score there."""
        contributions = (scaled * slopes).tolist()
        return [
            [Component(*component) for component in zip(self.names, values, of_pair, strict=True)]
            for values, of_pair in zip(self.raw(batch).tolist(), contributions, strict=True)
        ]


class FeatureScore(nn.Module):
    """What the features of the pair add to a score: a small perceptron. With the set "" nothing is added."""

    def __init__(self, name: str, encode: Encode) -> None:
        super().__init__()
        self.features = PairFeatures(name, encode)
        self.needs_lexical = self.features.needs_lexical
        self.head = MLP(len(self.features.names), UNITS) if name else None

    def forward(self, batch: PairBatch) -> Tensor | float:
        """(B,)"""
        if self.head is None:
            return 0.0
        score: Tensor = self.head(self.features(batch))
        return score

    def trace(self, batch: PairBatch) -> list[list[Component]]:
        """The contribution of each feature; exact: the perceptron is linear around each pair's features."""
        if self.head is None:
            return [[] for _ in range(len(batch))]
        scaled = self.features(batch).detach().requires_grad_()
        with torch.enable_grad():
            score = self.head(scaled).sum()
        return self.features.components(batch, scaled.detach(), torch.autograd.grad(score, scaled)[0])
