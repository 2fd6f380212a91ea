"""MatchPyramid: text matching as image recognition (Pang et al., AAAI 2016).

Symbols      M_ij = w_i (x) v_j -> image;  z^(1), z^(3) -> convolutions;  z^(2) -> dynamic pooling;  W_1, W_2 -> head
Sizes        the paper's: 8 maps of 5 x 5, 16 maps of 3 x 3, two poolings, a two-layer MLP. The pooled sizes follow the
             task there: here a grid of 10 x 10, then 2 x 2 cells at a time; the size of the MLP is `units`. They are as
             later papers and public implementations describe them; the original text was not at hand.
Departures   the image of "tensor", relu(u' T v + W [u ; v] + b) with c slices, is the one that Match-SRNN's authors
             compared with. Convolutions see zeros around an image, so that maps keep its size: the paper does not say.
             A cell of the grid holds the rows from floor(a * m / 10) up to floor((a + 1) * m / 10), where the paper
             has cells of one size that may reach past the map; texts shorter than the grid lend a row to several
             cells. One score, for any loss of this package, in place of a two-way softmax.
             The indicator looks at the words themselves: word vectors take no part then.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.layers.contributions import linear_contributions
from matchloom.layers.convolution import convolved_max
from matchloom.layers.heads import MLP
from matchloom.layers.interactions import Cosine, Dot, Indicator, TensorLayer, kernels_serve
from matchloom.models.base import ADAM, PairModel
from matchloom.traces import grid_trace
from matchloom.types import MatchloomError, Trace

INTERACTIONS = ("indicator", "dot", "cosine", "tensor")


class MatchPyramid(PairModel):
    """Words interact; the grid of interactions is an image that convolutions and dynamic pooling read; an MLP.

    Args:
        interaction: What a cell of the image holds: indicator (the same word or not), dot, cosine or tensor.
        slices: Images of the tensor interaction; the others have one.
        maps_1: Feature maps of the first convolution.
        kernel_1: Side of the first convolution's window.
        maps_2: Feature maps of the second convolution.
        kernel_2: Side of the second convolution's window.
        grid: Rows and columns that dynamic pooling leaves of an image.
        units: Hidden units of the MLP.
    """

    trained_with = ADAM
    single_precision = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        interaction: str = "dot",
        slices: int = 4,
        maps_1: int = 8,
        kernel_1: int = 5,
        maps_2: int = 16,
        kernel_2: int = 3,
        grid: int = 10,
        units: int = 128,
    ) -> None:
        super().__init__()
        if interaction not in INTERACTIONS:
            raise MatchloomError(
                f"interaction {interaction!r} is unknown; choose one of {', '.join(INTERACTIONS)}", code="unknown_name"
            )
        self.encoder, self.grid = encoder, grid
        self.needs_lexical = interaction == "indicator"
        self.trains_embedding = not self.needs_lexical
        self.interaction: Indicator | Dot | Cosine | TensorLayer
        if interaction == "indicator":
            self.interaction = Indicator()
        elif interaction == "dot":
            self.interaction = Dot()
        elif interaction == "cosine":
            self.interaction = Cosine()
        else:
            self.interaction = TensorLayer(encoder.size, slices)
        channels = self.interaction.channels
        self.channels = [interaction] if channels == 1 else [f"{interaction} {c + 1}" for c in range(channels)]
        self.conv_1 = nn.Conv2d(channels, maps_1, kernel_1, padding=kernel_1 // 2)
        self.conv_2 = nn.Conv2d(maps_1, maps_2, kernel_2, padding=kernel_2 // 2)
        self.head = MLP(maps_2 * (-(-grid // 2)) ** 2, units)
        for parameter in self.interaction.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def encode(self, texts: Texts) -> Tensor:
        """The vector of every word, (N, L, D); for the indicator a number for every word, (N, L)."""
        if self.needs_lexical:
            assert texts.lexical is not None, "the batch was made without lexical fields"
            return texts.lexical.keys[:, 0]
        return self.interaction.prepare(self.encoder(texts))

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        return self.recognise(self.image(left, right, batch), batch)

    def image(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """M_ij for all i, j; anything outside each pair's own m x n. (B, C, L, R)"""
        grid: Tensor = self.interaction(left, right, batch)
        return grid.to(torch.float32 if self.single else self.conv_1.weight.dtype)

    def recognise(self, image: Tensor, batch: PairBatch) -> Tensor:
        """From images (B, C, L, R) to scores (B,)."""
        m, n = batch.sizes
        if not kernels_serve(image):  # which read no cell outside
            image = image.masked_fill(~batch.cells[:, None], 0.0)
        # The largest of what the ReLU leaves is what it leaves of the largest.
        z = convolved_max(image, self.conv_1, m, n, size=self.grid)  # (B, maps_1, grid, grid)   z^(1), z^(2)
        side = torch.full_like(m, self.grid)
        z = convolved_max(z, self.conv_2, side, side, window=2)  # (B, maps_2, grid / 2, grid / 2)   z^(3), pooled
        score: Tensor = self.head(z.flatten(1).to(self.head.W_r.weight.dtype))
        return score

    def trace(self, batch: PairBatch) -> list[Trace]:
        """The image, and every cell of it with a contribution.

        The network is linear around each pair's image: contributions are value times slope, exactly; the residual is
        biases, and what the kernels that score round off.
        """
        with torch.no_grad():
            image = self.image(self.encode(batch.left), self.encode(batch.right), batch)
            scores = self.recognise(image, batch)
        image = image.to(self.conv_1.weight.dtype)
        _, contributions = linear_contributions(lambda image: self.recognise(image, batch), image)
        sizes = zip(scores.tolist(), *map(Tensor.tolist, batch.sizes), strict=True)
        return [
            grid_trace(score, image[b, :, :L, :R], contributions[b, :, :L, :R], self.channels)
            for b, (score, L, R) in enumerate(sizes)
        ]
