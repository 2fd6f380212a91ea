"""MV-LSTM: matching with multiple positional sentence representations (Wan et al., AAAI 2016).

Symbols      S_X, S_Y -> left, right;  p_t -> positions;  s(u, v) -> interaction;  q -> signals;  r, s -> head
Departures   The paper gives neither the number of tensor slices c nor the size of r: both are arguments. A pair with
             fewer than k cells has its missing places filled with 0, no interaction. Three defaults are not the
             paper's, for they generalise far better from some hundreds or thousands of questions; `train(paper=True)`
             is as published. M starts at the identity with small noise, since a random M knows nothing of "the same
             word" (`init`). Positions are L2-normalised before the bilinear and tensor interactions, as the cosine has
             them by its nature (`normalize`; trials_cqa.toml, trials_reuters.toml). Three slices of exact matches
             (`lexical`): the same word, stem or start, weighted by IDF and pooled like the learned ones, and for each
             the sums of `match_sums` beside its k largest. `features` adds a score of features of the pair ("overlap"
             or "pair"), which the paper does not have. `words` and `factored` are of the toolkit that its authors
             published later: they are here to be compared with (trials_cqa.toml) and off.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.layers.features import FeatureScore
from matchloom.layers.heads import MLP, head_slopes, init_uniform_
from matchloom.layers.interactions import INITS, Bilinear, Cosine, TensorLayer, l2_normalize, start_at_identity_
from matchloom.layers.lexical import SLICES, SUMS, exact_matches, length_discount, match_signals
from matchloom.layers.pooling import k_max
from matchloom.layers.recurrence import BiLSTM
from matchloom.models.base import PairModel, Settings
from matchloom.types import Component, MatchloomError, Signal, Trace

INTERACTIONS = ("cosine", "bilinear", "tensor")


class MVLSTM(PairModel):
    """Bi-LSTM positions, all pairs of positions interact, the k strongest interactions are scored by an MLP.

    Args:
        hidden: Size of the LSTM's states in each direction.
        interaction: How two positions meet: cosine, bilinear or tensor.
        slices: Maps of the tensor interaction, c in the paper; the others have one.
        k: How many of the strongest interactions of each map are kept.
        units: Hidden units of the MLP that scores them.
        init: First values of M of bilinear and tensor: identity (and small noise) or random.
        factored: M is a product TT', so that equal positions match; T starts at random.
        words: The word's vector stands in its position before the LSTM's states.
        normalize: Whether positions are L2-normalised before bilinear and tensor, too, as they are for the cosine.
        lexical: Add three maps of exact matches (word, stem, first letters), weighted by rarity.
        features: Add a score of features of the pair: overlap, pair or paraphrase; empty for none.
    """

    published: ClassVar[Settings] = {"init": "random", "normalize": False, "lexical": False}
    single_precision = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        hidden: int = 50,
        interaction: str = "tensor",
        slices: int = 4,
        k: int = 5,
        units: int = 50,
        init: str = "identity",
        factored: bool = False,
        words: bool = False,
        normalize: bool = True,
        lexical: bool = True,
        features: str = "",
    ) -> None:
        super().__init__()
        if interaction not in INTERACTIONS:
            raise MatchloomError(
                f"interaction {interaction!r} is unknown; choose one of {', '.join(INTERACTIONS)}", code="unknown_name"
            )
        if init not in INITS:
            raise MatchloomError(f"init {init!r} is unknown; choose one of {', '.join(INITS)}", code="unknown_name")
        self.encoder, self.k, self.lexical, self.needs_features = encoder, k, lexical, features
        self.least_words = k
        self.features = FeatureScore(features, encoder)
        self.needs_lexical = lexical or self.features.needs_lexical
        self.positions, self.words = BiLSTM(encoder.size, hidden), words
        self.normalize = normalize and interaction != "cosine"  # which divides by the lengths itself
        size = 2 * hidden + (encoder.size if words else 0)
        self.interaction: Cosine | Bilinear | TensorLayer
        if interaction == "cosine":
            self.interaction = Cosine()
        elif interaction == "bilinear":
            self.interaction = Bilinear(size, factored=factored)
        else:
            self.interaction = TensorLayer(size, slices, factored=factored)
        learned = self.interaction.channels
        self.channels = [interaction] if learned == 1 else [f"{interaction} {c + 1}" for c in range(learned)]
        self.learned = len(self.channels)
        if lexical:
            self.channels += SLICES
        self.head = MLP(len(self.channels) * k + (len(SLICES) * SUMS if lexical else 0), units)
        init_uniform_(self)
        if init == "identity" and not factored and not isinstance(self.interaction, Cosine):
            start_at_identity_(self.interaction.M)

    def encode(self, texts: Texts) -> Tensor:
        """p_t for every position, (N, L, 2H).   step 1"""
        x = self.encoder.distinct(texts)
        p = self.positions(x, texts.lengths)
        if self.words:
            p = torch.cat([(x if isinstance(x, Tensor) else x.spread()).to(p.dtype), p], dim=2)
        return self.interaction.prepare(l2_normalize(p) if self.normalize else p)

    def forward(self, batch: PairBatch) -> Tensor:
        """Match each pair of the batch, of which both sides are read at once. Returns scores (B,)."""
        joined = batch.joined()
        if joined is None:
            return super().forward(batch)
        p = self.encode(joined.left)
        if torch.is_grad_enabled():  # one gradient for all positions
            return self.scores(self.interaction.pool(p, p, joined, self.k), batch)
        N, L = batch.left.words.shape
        return self.match(p[:N, :L], p[N:, : batch.right.words.shape[1]], batch)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        return self.scores(self.interaction.pool(left, right, batch, self.k), batch)  # steps 2 and 3

    def scores(self, values: Tensor, batch: PairBatch) -> Tensor:
        """From the pooled values (B, C, K) to scores (B,)."""
        score: Tensor = self.head(self.signals(values, batch))  # (B,)   r, s
        return score + self.features(batch)  # type: ignore[no-any-return]

    def interact(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """s(p_Xi, p_Yj) for all i, j; with `lexical` the exact matches as more channels. (B, C, L, R)"""
        grid = self.interaction(left, right, batch).to(self.head.W_r.weight.dtype)
        return torch.cat([grid, exact_matches(batch)], dim=1) if self.lexical else grid

    def signals(self, values: Tensor, batch: PairBatch) -> Tensor:
        """q: the pooled values of all channels, and with `lexical` the sums of the exact matches. (B, C * K [+ 9])"""
        values = values.to(self.head.W_r.weight.dtype)
        if not self.lexical:
            return values.flatten(1)
        matches, sums = match_signals(batch, self.k)
        return torch.cat([values.flatten(1), matches.flatten(1), sums], dim=1)

    def trace(self, batch: PairBatch) -> list[Trace]:
        """The pooled cells and the whole grid. Shares are exact: the head is linear around each pair's signals."""
        with torch.no_grad():
            grid = self.interact(self.encode(batch.left), self.encode(batch.right), batch)
            values, places = k_max(grid, batch.cells, self.k)
        scores, slopes = head_slopes(self.head, self.signals(values[:, : self.learned], batch))
        with torch.no_grad():
            scores = scores + self.features(batch)
        components = self.features.trace(batch)
        return [
            self._trace_one(batch, b, grid[b], values[b], places[b], scores[b], slopes[b], components[b])
            for b in range(len(batch))
        ]

    def _trace_one(
        self,
        batch: PairBatch,
        b: int,
        grid: Tensor,
        values: Tensor,
        places: Tensor,
        score: Tensor,
        slopes: Tensor,
        components: list[Component],
    ) -> Trace:
        L = int(batch.left.lengths[batch.left_rows[b]])
        R = int(batch.right.lengths[batch.right_rows[b]])
        width = grid.shape[2]
        contributions: dict[tuple[int, int, int], tuple[float, float]] = {}
        pooled = slopes[: values.numel()].view_as(values)
        for c, i in ((places >= 0) & (values != 0)).nonzero().tolist():  # a value of 0 is no interaction
            place, value = int(places[c, i]), float(values[c, i])
            contributions[c, place // width, place % width] = (value, value * float(pooled[c, i]))
        if self.lexical:  # each match also counts in the sums of its slice
            discount = float(length_discount(batch)[b])
            sums = slopes[values.numel() :].view(len(SLICES), SUMS).tolist()
            for c, (plain, discounted, squared) in enumerate(sums, start=self.learned):
                for i, j in grid[c, :L, :R].nonzero().tolist():
                    value = float(grid[c, i, j])
                    contribution = value * (plain + discount * (discounted + value * squared))
                    contributions[c, i, j] = (value, contributions.get((c, i, j), (value, 0.0))[1] + contribution)
        signals = [Signal(i, j, c, value, contribution) for (c, i, j), (value, contribution) in contributions.items()]
        residual = (
            float(score)
            - sum(signal.contribution for signal in signals)
            - sum(component.contribution for component in components)
        )
        return Trace(
            float(score), signals, residual, grid[:, :L, :R].cpu().numpy().copy(), list(self.channels), components
        )
