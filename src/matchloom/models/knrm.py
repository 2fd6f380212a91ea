"""KNRM: end-to-end neural ad-hoc ranking with kernel pooling (Xiong et al., SIGIR 2017).

Symbols      M_ij -> cosines;  mu_k, sigma_k -> mu, sigma;  K_k(M_i) -> kernels;  phi(M) -> phi;  w, b -> head
             K_k(M_i) = sum over j of exp(-(M_ij - mu_k)^2 / (2 sigma_k^2));  phi_k = .01 * sum over i of log K_k(M_i)
Settings     the paper's: one kernel for exact matches (mu 1, sigma .001) and ten of width .1 at .9, .7, ..., -.9
             (`kernels=11`). Adam at .001.
Departures   The score is w'phi + b without the paper's tanh, which changes no order and holds the hinge back. Word
             vectors are the run's own, not learnt from query logs. log K is not taken below -23, as in public code.
             `features` adds a score of features of the pair ("overlap" or "pair"), which the paper does not have.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.kernels.interact import Meeting, kernel_sums
from matchloom.layers.features import FeatureScore
from matchloom.layers.heads import init_uniform_
from matchloom.layers.interactions import Cosine, kernels_serve
from matchloom.models.base import ADAM, PairModel
from matchloom.traces import grid_trace
from matchloom.types import MatchloomError, Trace

EXACT = 0.001  # sigma of the kernel at 1
LEAST = 1e-10  # a kernel that nothing is near to
SCALE = 0.01


class KNRM(PairModel):
    """All pairs of words interact by cosine; soft counts of how many lie near each of some similarities are scored.

    Args:
        kernels: how many there are: one for exact matches, the others spread evenly from -1 to 1
        sigma: width of the others
        features: features of the pair that add a score of their own: none, overlap or pair
    """

    trained_with = ADAM
    single_precision = True
    mu: Tensor
    sigma: Tensor

    def __init__(self, encoder: Encoder, *, kernels: int = 11, sigma: float = 0.1, features: str = "") -> None:
        super().__init__()
        if kernels < 2 or not sigma > 0:
            raise MatchloomError(
                f"knrm takes 2 kernels or more and a sigma above 0, found {kernels} and {sigma}", code="bad_value"
            )
        self.encoder, self.needs_features = encoder, features
        self.features = FeatureScore(features, encoder)
        self.needs_lexical = self.features.needs_lexical
        self.interaction = Cosine()
        soft = kernels - 1
        middles = [1 - (2 * k + 1) / soft for k in range(soft)]
        self.register_buffer("mu", torch.tensor([1.0, *middles]), persistent=False)
        self.register_buffer("sigma", torch.tensor([EXACT, *[sigma] * soft]), persistent=False)
        self.head = nn.Linear(kernels, 1)
        init_uniform_(self)

    def encode(self, texts: Texts) -> Tensor:
        """The L2-normalised vector of every word. (N, L, D)"""
        return self.interaction.prepare(self.encoder(texts))

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        K = self.sums(left, right, batch)  # (B, k, L)
        return self.score(K.clamp_min(LEAST).log(), batch) + self.features(batch)  # type: ignore[no-any-return]

    def sums(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """K_k(M_i), by the native kernel where it serves, which writes no cell. (B, k, L)"""
        if kernels_serve(left, right):
            return kernel_sums(Meeting(left, right, batch), self.mu, self.sigma).to(self.mu.dtype)
        return self.kernels(self.cosines(left, right, batch), batch).sum(3)

    def cosines(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """M. (B, L, R)"""
        return self.interaction(left, right, batch)[:, 0].to(self.mu.dtype)  # type: ignore[no-any-return]

    def kernels(self, M: Tensor, batch: PairBatch) -> Tensor:
        """What each cell adds to each K_k(M_i); nothing outside the texts. (B, k, L, R)"""
        apart = (M[:, None] - self.mu[:, None, None]) / self.sigma[:, None, None]
        return torch.exp(-apart.square() / 2) * batch.cells[:, None]

    def score(self, logs: Tensor, batch: PairBatch) -> Tensor:
        """w'phi + b of log K_k(M_i) (B, k, L). (B,)"""
        inside = batch.left.mask[batch.left_rows][:, None]
        phi = SCALE * (logs * inside).sum(2)  # (B, k)
        return self.head(phi)[:, 0]  # type: ignore[no-any-return]

    def trace(self, batch: PairBatch) -> list[Trace]:
        """The cosines; a query word's w_k log K_k(M_i) is shared out among its cells as they make up K_k(M_i).

        Exact but for kernels that nothing is near to: what these add, and b, is the residual.
        """
        with torch.no_grad():
            left, right = self.encode(batch.left), self.encode(batch.right)
            M = self.cosines(left, right, batch)
            cells = self.kernels(M, batch)
            K = cells.sum(3, keepdim=True).clamp_min(LEAST)  # (B, k, L, 1)
            weights = SCALE * self.head.weight[0][:, None, None]
            added = (weights * K.log() * cells / K).sum(1)  # (B, L, R)
            scores = self.match(left, right, batch)
        components = self.features.trace(batch)
        sizes = zip(scores.tolist(), *map(Tensor.tolist, batch.sizes), strict=True)
        return [
            grid_trace(score, M[b, None, :L, :R], added[b, None, :L, :R], ["cosine"], components[b])
            for b, (score, L, R) in enumerate(sizes)
        ]
