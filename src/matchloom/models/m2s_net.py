"""M2S-Net: learning word similarity in several modalities for answer selection (Meng et al., 2016).

Symbols      w_i, w_j -> left, right;  M = [m^k_ij] -> grid;  U_k, B^k -> similarity.U, similarity.B;  L^t -> blocks,
             F -> blocks.F;  theta of the rank loss -> hidden, classes
             m^k_ij = w_i' U_k w_j + b^k_ij (metric), w_i'w_j / (|w_i| |w_j|) (cosine) or 1 / (1 + |w_i - w_j|)
             (euclidean)
Score        the two logits of the softmax, match less no match: log p / (1 - p). Cross-entropy on the score is then
             the paper's equation 4 exactly.
Settings     those of the authors' published run: a frame of 40 x 40 words, filters of 5 x 5, one block 32 filters
             and pooling 4 x 4, a second one 64 filters and pooling of what is left; 32 hidden units; U and B start
             at 0; dropout .5 on the hidden layer and .1 on the similarities (`dropout=0.0` switches both off).
             Three blocks have 32 filters each and pooling 2, 2 and the residual: the paper does not say.
Departures   Texts stand in the middle of the frame and longer ones are cut after its last word, as with the authors,
             but padding has no vector of its own: outside the texts M is 0, position bias included. Batch
             normalisation takes its statistics over the whole frame, zeros too, as theirs did. The paper puts tanh
             before pooling (equation 3), its published run behind normalisation and pooling; so do we. The bias of
             a convolution is that of its normalisation. The features are brought to mean 0 and deviation 1. Weight
             decay falls on U alone, as the paper says (in the run on the convolutions too). Words without a vector
             start in (-.1, .1) as elsewhere here (theirs: .08). `features="pair"` is ours, and what no source says:
             running means move by .1 with each batch, gradients are not clipped, AP on the development set chooses.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.onnx import is_in_onnx_export

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.layers.convolution import ConvolutionBlock
from matchloom.layers.features import PairFeatures
from matchloom.layers.heads import init_linear_, init_uniform_
from matchloom.layers.interactions import dot, gather_rows
from matchloom.layers.recurrence import take_positions
from matchloom.models.base import PairModel, Settings
from matchloom.traces import grid_trace
from matchloom.types import MatchloomError, Trace

SIMILARITIES = ("metric", "cosine", "euclidean")
POOLINGS = ("average", "max")
WIDTH = 5
REST = 0  # pooling of all that is left
BLOCKS = {1: [(32, 4)], 2: [(32, 4), (64, REST)], 3: [(32, 2), (32, 2), (32, REST)]}  # filters, pooling
INITS = ("uniform", "xavier")


class M2SNet(PairModel):
    """Words are similar in several learned ways; convolutions over these maps are scored, beside word overlap.

    Args:
        similarity: How two words are compared: metric (learnt), cosine or euclidean.
        modalities: In how many ways the metric compares them; the other two have one.
        position_bias: Add a learnt number for each cell of the frame to the metric.
        blocks: Blocks of convolution and pooling: 1, 2 or 3.
        pooling: average or max.
        features: Features of the pair beside the convolutions: overlap, pair or paraphrase; empty for none.
        frame: Words of a text that are read, and the side of the map; it must fit the blocks.
        units: Hidden units.
        dropout: Part of the hidden units that is dropped in training; 0 also turns off dropout of the similarities.
        similarity_dropout: Part of the similarities that is dropped in training.
        init: First weights of convolutions and layers: uniform, in (-.1, .1), or xavier. U and B start at 0.
    """

    batch_coupled = True
    draws_at_random = True
    trained_with: ClassVar[Settings] = {
        "loss": "cross_entropy",
        "optimizer": "adadelta",
        "learning_rate": 1.0,
        "batch": 50,
        "patience": 5,
        "check_every": 100,
        "measure": "AP",
        "clip": 0.0,
        "weight_decay": 5e-4,
    }

    def __init__(
        self,
        encoder: Encoder,
        *,
        similarity: str = "metric",
        modalities: int = 4,
        position_bias: bool = True,
        blocks: int = 2,
        pooling: str = "average",
        features: str = "overlap",
        frame: int = 40,
        units: int = 32,
        dropout: float = 0.5,
        similarity_dropout: float = 0.1,
        init: str = "uniform",
    ) -> None:
        super().__init__()
        for name, value, choices in (
            ("similarity", similarity, SIMILARITIES),
            ("pooling", pooling, POOLINGS),
            ("blocks", blocks, tuple(BLOCKS)),
            ("init", init, INITS),
        ):
            if value not in choices:
                known = ", ".join(map(str, choices))
                raise MatchloomError(
                    f"{name} {value!r} of m2s_net is unknown; choose one of {known}", code="unknown_name"
                )
        for name, part in (("dropout", dropout), ("similarity_dropout", similarity_dropout)):
            if not 0 <= part < 1:
                raise MatchloomError(
                    f"{name} of m2s_net is a part of 1, at least 0 and below 1; found {part}", code="bad_value"
                )
        self.encoder, self.frame, self.needs_features = encoder, frame, features
        self.dropout, self.similarity_dropout = dropout, similarity_dropout if dropout else 0.0
        self.features = PairFeatures(features, encoder)
        self.needs_lexical = self.features.needs_lexical
        self.similarity = Similarity(similarity, encoder.size, modalities, frame if position_bias else 0)
        C = self.similarity.channels
        self.channels = [similarity] if C == 1 else [f"{similarity} {c + 1}" for c in range(C)]
        self.blocks = nn.ModuleList(_blocks(blocks, self.similarity.channels, frame, pooling == "average"))
        last = self.blocks[-1]
        assert isinstance(last, ConvolutionBlock)
        flat = len(last.beta) * last.pooled**2
        self.hidden = nn.Linear(flat + len(self.features.names), units)
        self.classes = nn.Linear(units, 2)  # no match, match
        init_uniform_(self)
        if init == "xavier":
            init_linear_(self.hidden, self.classes)
        for block in self.blocks:
            if init == "xavier":
                nn.init.xavier_uniform_(block.F)  # type: ignore[arg-type]
            nn.init.ones_(block.gamma)  # type: ignore[arg-type]
            nn.init.zeros_(block.beta)  # type: ignore[arg-type]
        for parameter in self.similarity.parameters():
            nn.init.zeros_(parameter)

    def encode(self, texts: Texts) -> Tensor:
        """The word vectors in the part of the frame that `window` needs, 0 where there is no word. (N, W, D)"""
        places, inside = self.framed(texts)
        x = take_positions(self.encoder(texts), places) * inside[:, :, None]
        return self.similarity.prepare(x)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        grid = self.interact(left, right, batch)  # (B, C, W, W')   equations 1 and 2
        features = self.features(batch) if self.needs_features else None
        return self.score(grid, features, batch)

    def interact(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """m^k_ij for the words of both texts where they stand in the frame, 0 elsewhere. (B, C, W, W')"""
        (top, bottom), (start, stop) = self.window(batch.left), self.window(batch.right)
        grid = self.similarity(left, right, batch, (slice(top, bottom), slice(start, stop)))
        above, beside = self.framed(batch.left)[1], self.framed(batch.right)[1]
        masked: Tensor = grid * (above[batch.left_rows][:, None, :, None] & beside[batch.right_rows][:, None, None, :])
        return masked

    def score(self, grid: Tensor, features: Tensor | None, batch: PairBatch) -> Tensor:
        """From similarities and features on. (B,)"""
        if self.training and self.similarity_dropout:
            grid = functional.dropout(grid, self.similarity_dropout)
        x: Tensor = self.blocks[0](grid, self.window(batch.left)[0], self.window(batch.right)[0])
        for block in self.blocks[1:]:
            x = block(x)  # (B, filters, P, P)   equation 3
        x = x.flatten(1)
        joined = x if features is None else torch.cat([x, features], dim=1)
        h = functional.dropout(torch.tanh(self.hidden(joined)), self.dropout, self.training)
        logits = self.classes(h)  # (B, 2)
        return logits[:, 1] - logits[:, 0]  # type: ignore[no-any-return]

    def framed(self, texts: Texts) -> tuple[Tensor, Tensor]:
        """For each cell of a side of the window the position of its word, and whether there is one. (N, W), (N, W)"""
        start, stop = self.window(texts)
        lengths = texts.lengths.clamp(max=self.frame)[:, None]
        places = torch.arange(start, stop, device=lengths.device) - (self.frame - lengths) // 2
        inside = (places >= 0) & (places < lengths)
        return places.where(inside, 0), inside

    def window(self, texts: Texts) -> tuple[int, int]:
        """The part of a side of the frame that these texts need: outside of it the first convolution is 0."""
        # A graph has the whole frame, as it will meet texts of any length.
        longest = self.frame if is_in_onnx_export() else min(int(texts.lengths.max()), self.frame)
        first = (self.frame - longest) // 2
        block = self.blocks[0]
        assert isinstance(block, ConvolutionBlock)
        return block.needed(first, first + longest)  # shorter texts stand within the longest one's place

    def decayed(self) -> list[nn.Parameter]:
        """U alone: lambda / 2 |U|^2 of equation 4."""
        return [self.similarity.U] if self.similarity.kind == "metric" else []

    def trace(self, batch: PairBatch) -> list[Trace]:
        """Every similarity of two words; its contribution is its value times the slope of the score there.

        Features likewise; what the network does not do linearly around the pair is the rest.
        """
        with torch.no_grad():
            grid = self.interact(self.encode(batch.left), self.encode(batch.right), batch)
            features = self.features(batch) if self.needs_features else grid.new_zeros(len(batch), 0)
        grid.requires_grad_()
        features.requires_grad_()
        with torch.enable_grad():
            scores = self.score(grid, features, batch)
            of_grid, of_features = torch.autograd.grad(scores.sum(), (grid, features), materialize_grads=True)
        contributions = (grid * of_grid).detach()
        components = self.features.components(batch, features.detach(), of_features) if self.needs_features else None
        traces = []
        above, beside = self.framed(batch.left), self.framed(batch.right)
        for b, (score, L, R) in enumerate(zip(scores.tolist(), *map(Tensor.tolist, batch.sizes), strict=True)):
            x, y = int(batch.left_rows[b]), int(batch.right_rows[b])
            rows, columns = above[1][x].nonzero()[:, 0], beside[1][y].nonzero()[:, 0]
            cut = (0, R - len(columns), 0, L - len(rows))  # words beyond the frame have no value
            words, added = (
                functional.pad(one[b][:, rows][:, :, columns], cut) for one in (grid.detach(), contributions)
            )
            of_pair = () if components is None else components[b]
            traces.append(grid_trace(score, words, added, self.channels, of_pair))
        return traces


class Similarity(nn.Module):
    """m^k_ij of equations 1 and 2, in as many modalities as the metric has; the two others have one and no bias."""

    def __init__(self, kind: str, size: int, modalities: int, frame: int) -> None:
        super().__init__()
        self.kind = kind
        self.channels = modalities if kind == "metric" else 1
        self.B: nn.Parameter | None = None
        if kind == "metric":
            self.U = nn.Parameter(torch.empty(modalities, size, size))
            if frame:
                self.B = nn.Parameter(torch.empty(modalities, frame, frame))

    def prepare(self, x: Tensor) -> Tensor:
        """What depends on one side alone."""
        return functional.normalize(x, dim=-1) if self.kind == "cosine" else x

    def forward(self, left: Tensor, right: Tensor, batch: PairBatch, place: tuple[slice, slice]) -> Tensor:
        """(N, W, D), (M, W', D), which stand at `place` in the frame -> (B, C, W, W')"""
        if self.kind == "cosine":
            return dot(left, right, batch)[:, None]
        if self.kind == "euclidean":
            u, v = gather_rows(left, batch.left_rows), gather_rows(right, batch.right_rows)
            # By differences, not by products: two equal words must be at distance 0 exactly.
            distances = torch.cdist(u, v, compute_mode="donot_use_mm_for_euclid_dist")
            return 1 / (1 + distances)[:, None]
        N, W, D = left.shape
        projected = (left @ self.U.transpose(0, 1).reshape(D, -1)).view(N, W * self.channels, D)
        grid = dot(projected, right, batch).view(batch.left_rows.shape[0], W, self.channels, -1).transpose(1, 2)
        return grid if self.B is None else grid + self.B[:, place[0], place[1]]


def _blocks(number: int, channels: int, frame: int, average: bool) -> list[ConvolutionBlock]:
    blocks = []
    size = frame
    for filters, pool in BLOCKS[number]:
        unpooled = size - WIDTH + 1
        if unpooled < 1 or unpooled % (pool or 1):
            fits = ", ".join(str(n) for n in range(WIDTH, 97) if _fits(number, n))
            raise MatchloomError(
                f"frame {frame} of m2s_net does not fit {number} blocks; up to 96 these do: {fits}", code="bad_value"
            )
        block = ConvolutionBlock(channels, filters, size=size, width=WIDTH, pool=pool or unpooled, average=average)
        blocks.append(block)
        channels, size = filters, block.pooled
    return blocks


def _fits(number: int, size: int) -> bool:
    for _, pool in BLOCKS[number]:
        size -= WIDTH - 1
        if size < 1 or size % (pool or 1):
            return False
        size //= pool or size
    return True
