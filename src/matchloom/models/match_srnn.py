"""Match-SRNN: modeling the recursive matching structure with spatial RNN (Wan et al., IJCAI 2016).

Symbols      S_1, S_2 -> left, right;  s_ij -> grid;  h_ij, z -> scans;  W^(s), b^(s) -> head
Departures   M of the tensor starts at the identity with small noise, as MV-LSTM's does here; `init="random"` is the
             paper's. `tied` shares the four gates z among dimensions and leaves the reset gates free,
             which take no part in the path; the paper only says that "the gates" are made identical. Where gates are
             free, the path follows their mean over dimensions. Bi-Match-SRNN's second scan has parameters of its own,
             and one linear function scores both ends: the paper does not say. `reset=False`, `dimensions=1` and the
             indicator are the paper's simulation of the longest common subsequence. The indicator looks at the words
             themselves: word vectors take no part then. `normalize` L2-normalises word vectors before the tensor, as
             MV-LSTM's positions are here. `features` adds a score of features of the pair ("overlap" or "pair").
             The paper has neither.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.layers.features import FeatureScore
from matchloom.layers.heads import init_uniform_
from matchloom.layers.interactions import INITS, Cosine, Indicator, TensorLayer, l2_normalize, start_at_identity_
from matchloom.layers.spatial_gru import SpatialGRU, matching_path
from matchloom.models.base import PairModel, Settings
from matchloom.types import MatchloomError, Signal, Trace

INTERACTIONS = ("tensor", "cosine", "indicator")


class MatchSRNN(PairModel):
    """Words interact, a spatial GRU scans the grid of interactions, and where it ends h is scored."""

    not_exported = "its spatial GRU is native code, which walks a pair's cells in their order"
    published: ClassVar[Settings] = {"init": "random", "normalize": False}
    single_precision = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        interaction: str = "tensor",
        slices: int = 10,
        dimensions: int = 10,
        reset: bool = True,
        tied: bool = False,
        init: str = "identity",
        normalize: bool = False,
        features: str = "",
        bidirectional: bool = False,
    ) -> None:
        super().__init__()
        if interaction not in INTERACTIONS:
            raise MatchloomError(
                f"interaction {interaction!r} is unknown; choose one of {', '.join(INTERACTIONS)}", code="unknown_name"
            )
        if init not in INITS:
            raise MatchloomError(f"init {init!r} is unknown; choose one of {', '.join(INITS)}", code="unknown_name")
        self.encoder, self.needs_features, self.normalize = encoder, features, normalize
        self.features = FeatureScore(features, encoder)
        self.trains_embedding = interaction != "indicator"
        self.needs_lexical = not self.trains_embedding or self.features.needs_lexical
        self.interaction: Cosine | Indicator | TensorLayer
        if interaction == "cosine":
            self.interaction = Cosine()
        elif interaction == "indicator":
            self.interaction = Indicator()
        else:
            self.interaction = TensorLayer(encoder.size, slices)
        self.channels = ["forward", "backward"] if bidirectional else ["forward"]
        self.scans = nn.ModuleList(
            SpatialGRU(self.interaction.channels, dimensions, reverse=name == "backward", reset=reset, tied=tied)
            for name in self.channels
        )
        self.head = nn.Linear(len(self.channels) * dimensions, 1)
        init_uniform_(self)
        if init == "identity" and isinstance(self.interaction, TensorLayer):
            start_at_identity_(self.interaction.M)

    def encode(self, texts: Texts) -> Tensor:
        """u(w) for every word, (N, L, D); for the indicator a number for every word, (N, L)."""
        if not self.trains_embedding:
            assert texts.lexical is not None, "the batch was made without lexical fields"
            return texts.lexical.keys[:, 0]
        u = self.encoder(texts)
        return self.interaction.prepare(l2_normalize(u, single=self.single) if self.normalize else u)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        grid = self.interact(left, right, batch)  # (B, C, L, R)   4.1, s_ij
        ends = torch.cat([scan(grid, *batch.sizes) for scan in self.scans], 1)  # (B, d) of each   4.2, h_mn
        score: Tensor = self.head(ends.to(self.head.weight.dtype))[:, 0]  # (B,)           4.3, M(S_1, S_2)
        return score + self.features(batch)  # type: ignore[no-any-return]

    def interact(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """s_ij for all i, j. (B, C, L, R)"""
        grid: Tensor = self.interaction(left, right, batch)
        return grid.to(torch.float32 if self.single else self.head.weight.dtype)

    def trace(self, batch: PairBatch) -> list[Trace]:
        """The matching path of each scan, on the map of the h dimension with the largest weight in the score.

        A cell's contribution is what the running score W^(s) h gains when the path enters the cell, so that the
        contributions of a path add up to W^(s) h at its end; the residual is b^(s), what features do not
        contribute, and what the kernel that scores rounds off.
        """
        with torch.no_grad():
            left, right = self.encode(batch.left), self.encode(batch.right)
            given = self.match(left, right, batch).tolist()
            grid = self.interact(left, right, batch).to(self.head.weight.dtype)
            m, n = batch.sizes
            scanned = [scan.scan(grid, m, n) for scan in self.scans]  # type: ignore[operator]
        weights = self.head.weight.detach()[0].chunk(len(self.channels))
        components = self.features.trace(batch)
        traces = []
        for b, (L, R) in enumerate(zip(m.tolist(), n.tolist(), strict=True)):
            signals: list[Signal] = []
            maps = []
            for channel, (name, (h, z), w) in enumerate(zip(self.channels, scanned, weights, strict=True)):
                states, gates = h[b, :, :L, :R], z[b, :, :, :L, :R]
                maps.append(states[w.argmax()])
                scores = torch.einsum("d,dlr->lr", w, states).tolist()
                if name == "backward":
                    path = [(L - 1 - i, R - 1 - j) for i, j in matching_path(gates.flip(2, 3))]
                else:
                    path = matching_path(gates)
                before = 0.0  # the border's h is 0
                for i, j in path:
                    signals.append(Signal(i, j, channel, float(maps[-1][i, j]), scores[i][j] - before))
                    before = scores[i][j]
            explained = sum(signal.contribution for signal in signals)
            explained += sum(component.contribution for component in components[b])
            score = given[b]
            residual = score - explained
            grids = torch.stack(maps).cpu().numpy()
            traces.append(Trace(score, signals, residual, grids, list(self.channels), components[b], paths=True))
        return traces


def match_srnn(
    encoder: Encoder,
    *,
    interaction: str = "tensor",
    slices: int = 10,
    dimensions: int = 10,
    reset: bool = True,
    tied: bool = False,
    init: str = "identity",
    normalize: bool = False,
    features: str = "",
) -> MatchSRNN:
    """Match-SRNN: one scan, from the first words to the last.

    Args:
        interaction: How two words meet: tensor, cosine or indicator (the same word or not; word vectors take no part).
        slices: Maps of the tensor interaction, c in the paper; the others have one.
        dimensions: Size of the spatial GRU's state h.
        reset: Whether the spatial GRU has reset gates.
        tied: Share the four gates z among all dimensions, so that the matching path is exact.
        init: First values of the tensor's M: identity (and small noise) or random.
        normalize: Whether word vectors are L2-normalised before they meet.
        features: Add a score of features of the pair: overlap, pair or paraphrase; empty for none.
    """
    return MatchSRNN(
        encoder,
        interaction=interaction,
        slices=slices,
        dimensions=dimensions,
        reset=reset,
        tied=tied,
        init=init,
        normalize=normalize,
        features=features,
    )


def bi_match_srnn(
    encoder: Encoder,
    *,
    interaction: str = "tensor",
    slices: int = 10,
    dimensions: int = 10,
    reset: bool = True,
    tied: bool = False,
    init: str = "identity",
    normalize: bool = False,
    features: str = "",
) -> MatchSRNN:
    """Bi-Match-SRNN: a second scan from the last words to the first.

    Args:
        interaction: How two words meet: tensor, cosine or indicator (the same word or not; word vectors take no part).
        slices: Maps of the tensor interaction, c in the paper; the others have one.
        dimensions: Size of each spatial GRU's state h.
        reset: Whether the spatial GRUs have reset gates.
        tied: Share the four gates z among all dimensions, so that the matching path is exact.
        init: First values of the tensor's M: identity (and small noise) or random.
        normalize: Whether word vectors are L2-normalised before they meet.
        features: Add a score of features of the pair: overlap, pair or paraphrase; empty for none.
    """
    return MatchSRNN(
        encoder,
        interaction=interaction,
        slices=slices,
        dimensions=dimensions,
        reset=reset,
        tied=tied,
        init=init,
        normalize=normalize,
        features=features,
        bidirectional=True,
    )
