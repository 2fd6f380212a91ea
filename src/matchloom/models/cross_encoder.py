"""Cross-encoder: both texts in one input, as BERT reads sentence pairs (Devlin et al., NAACL 2019).

Symbols      [CLS] X [SEP] Y [SEP] -> one sequence;  C -> first, the vector of its first mark;  W -> w;
             score = w'C + b. Words of either text see those of the other in every layer, so that there is nothing to
             encode before both are known: the slowest of all rankers, for the first few of a search.
Departures   BERT's pooler (a layer and tanh between C and w) is left out, as folders of sentence encoders have none
             that was trained. A query is cut at half the encoder's positions, and a text where they end. Over an
             encoder that reads one text at a time, such as word vectors, `layers` of our own read both: one head, no
             positions, the left and the right text told apart by a vector that is added.
Explanation  A link l_ij of 1 lets words i and j of the two texts see each other in every layer, 0 does not. The
             contribution of two words is the integral of ds/dl_ij while all links grow evenly from 0 to 1 (integrated
             gradients, Sundararajan et al., ICML 2017). They add up to what the score has gained from its start, the
             score of two texts whose words see each other only through the marks: the component "each text alone".
             What is left, the residual, is the error of the integral, which is summed at a few points; at more
             where it exceeds a thousandth of the score.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.onnx import is_in_onnx_export

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.encoders.shape import Shape
from matchloom.encoders.transformer import Layer
from matchloom.layers.links import attention_mask
from matchloom.models.base import ADAM, PairModel
from matchloom.traces import grid_trace
from matchloom.types import Component, Trace

STEPS = (12, 24, 48, 96)  # points at which an integral is summed, until it is good enough
EXACT = 1e-3
WORDS = 4096  # of all pairs that are read at a time: layers keep tens of kilobytes for each, in double precision
CELLS = 50_000  # of all maps of attention that a trace keeps at a time: each is kept for every head of every layer


class CrossEncoder(PairModel):
    """Both texts read as one by a pretrained encoder that is fine-tuned; for reranking the first of a search.

    Args:
        layers: Attention layers of its own, where the encoder reads one text at a time.
    """

    trained_with = ADAM

    def __init__(self, encoder: Encoder, *, layers: int = 1) -> None:
        super().__init__()
        self.encoder, self.reads_together = encoder, encoder.reads_pairs
        self.own = None if encoder.reads_pairs else OwnLayers(encoder.size, layers)
        self.head = nn.Linear(encoder.size, 1)

    def encode(self, texts: Texts) -> Tensor:
        """Of a text alone there is nothing to know: no numbers. (N, L, 0)"""
        return torch.empty(*texts.words.shape, 0, device=texts.words.device)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,); the encodings hold nothing, and the texts themselves are read, some pairs at a time."""
        if torch.is_grad_enabled() or is_in_onnx_export():
            return self.head(self.first(batch))[:, 0]  # type: ignore[no-any-return]
        some = max(1, WORDS // (batch.left.words.shape[1] + batch.right.words.shape[1]))
        rows = zip(*(torch.split(side, some) for side in (batch.left_rows, batch.right_rows)), strict=True)
        return torch.cat([self.head(self.first(PairBatch(batch.left, batch.right, *pair)))[:, 0] for pair in rows])

    def first(self, batch: PairBatch, links: Tensor | None = None) -> Tensor:
        """C, where words of the two texts see as much of each other as links (B, L, R) say; None: all. (B, D)"""
        left, right = batch.left.take(batch.left_rows), batch.right.take(batch.right_rows)
        if self.own is None:
            return self.encoder.together(left, right, links)
        words = self.encoder(batch.left)[batch.left_rows], self.encoder(batch.right)[batch.right_rows]
        return self.own(*words, left.mask, right.mask, links)  # type: ignore[no-any-return]

    def trace(self, batch: PairBatch) -> list[Trace]:
        """What each link of two words added, and what the score would be without any."""
        return [self.traced(batch, b, *map(int, sizes)) for b, sizes in enumerate(zip(*batch.sizes, strict=True))]

    def traced(self, batch: PairBatch, b: int, L: int, R: int) -> Trace:
        """Why the b-th pair, of L and R words, got its score."""
        alone = float(self.at(batch, b, torch.tensor([0.0]))[0])
        with torch.no_grad():
            one = PairBatch(batch.left, batch.right, batch.left_rows[b : b + 1], batch.right_rows[b : b + 1])
            score = float(self.head(self.first(one)))
        for steps in STEPS:
            points, weights = (torch.from_numpy(x) for x in integration(steps))
            _, slopes = self.at(batch, b, points)
            added = (slopes * weights.to(slopes)[:, None, None]).sum(0)[None, :L, :R]
            if abs(alone + float(added.sum()) - score) <= EXACT * abs(score):
                break
        return grid_trace(score, added, added, ["link"], [Component("each text alone", alone, alone)])

    def at(self, batch: PairBatch, b: int, shares: Tensor) -> tuple[Tensor, Tensor]:
        """The b-th pair's score at each of N shares of all its links (N,), and the slopes of these links (N, L, R)."""
        left, right = batch.left.take(batch.left_rows[b : b + 1]), batch.right.take(batch.right_rows[b : b + 1])
        widths = left.words.shape[1], right.words.shape[1]
        scores, slopes = [], []
        for some in torch.split(shares.to(self.head.weight), max(1, CELLS // sum(widths) ** 2)):
            rows = torch.zeros(len(some), dtype=torch.int64, device=some.device)
            links = some[:, None, None].expand(-1, *widths).clone().requires_grad_()
            with torch.enable_grad():
                found = self.head(self.first(PairBatch(left, right, rows, rows), links))[:, 0]
                slopes.append(torch.autograd.grad(found.sum(), links)[0])
            scores.append(found.detach())
        return torch.cat(scores), torch.cat(slopes)


class OwnLayers(nn.Module):
    """Attention over a mark and the words of both texts, for encoders that read one text at a time."""

    def __init__(self, size: int, layers: int) -> None:
        super().__init__()
        self.mark, self.second = nn.Parameter(torch.randn(size)), nn.Parameter(torch.randn(size))
        shape = Shape(1, 3, size, layers, heads=1, inner=2 * size, first=0, epsilon=1e-5, activation="gelu", dropout=0)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(layers))
        for layer in self.layers.modules():
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()

    def forward(self, left: Tensor, right: Tensor, ours: Tensor, theirs: Tensor, links: Tensor | None) -> Tensor:
        """(B, L, D), (B, R, D) and their masks -> (B, D)"""
        B, D = left.shape[0], left.shape[2]
        x = torch.cat([self.mark.expand(B, 1, D), left, right + self.second], 1)
        words = torch.arange(-1, x.shape[1] - 1, device=x.device).expand(B, -1)
        mask = torch.cat([ours.new_ones(B, 1), ours, theirs], 1)
        for layer in self.layers:
            x = layer(x, attention_mask(words, mask, links), 0.0)
        return x[:, 0]


def integration(steps: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points from 0 to 1 and their weights: Gauss and Legendre's, raised to the fourth power.

    Near 0 the points are dense, as most happens there: a link that is strong when it is open needs little to be so.
    """
    points, weights = np.polynomial.legendre.leggauss(steps)
    t = (points + 1) / 2
    return t**4, weights / 2 * 4 * t**3
