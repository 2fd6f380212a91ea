"""ARC-II: convolutional architectures for matching natural language sentences (Hu et al., NIPS 2014).

Symbols      x_i, y_j -> windows of word vectors;  z^(1) -> pairs of windows;  z^(2), z^(3), ... -> maps;  g -> the gate
Sizes        the paper's: windows of three words and of 3 x 3 units, three convolutions, three poolings, a two-layer
             MLP. The paper tried 200 to 500 maps; 100 are the default, because cost grows with their square. It gives
             no size for the MLP: `units`. Sizes and gate are as later papers describe them; the original text was not
             at hand.
Departures   the gate of z^(1) is closed where either window holds no word. The paper writes it for the two windows
             joined, so that a word would meet the other text's padding, and the score would depend on how far the
             texts were padded. Everything above is the paper's network with zeros behind the texts far enough for
             every window that begins in their first `max_words` words; words behind those are not read. No dropout.

Layer 1 is never computed cell by cell. W [x_i ; y_j] = W_x x_i + W_y y_j, and since the ReLU never falls, the largest
of four neighbours is relu(max W_x x + max W_y y + b): either side is multiplied and pooled on its own, once a text.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, pad

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.layers.contributions import linear_contributions
from matchloom.layers.gated import GatedConvolution2d, pairs_max, windows
from matchloom.layers.heads import MLP, linear
from matchloom.layers.interactions import gather_rows
from matchloom.models.base import ADAM, PairModel
from matchloom.traces import grid_trace
from matchloom.types import Trace


class ARCII(PairModel):
    """Every window of one text meets every window of the other; 2-D convolutions and poolings; an MLP.

    Args:
        maps: Feature maps of each convolution; cost grows with their square.
        window: Words of a window, and the side of each later convolution.
        layers: Convolutions, the first between windows of both texts; each is followed by a pooling of 2 x 2.
        max_words: Words of a text that are read.
        units: Hidden units of the MLP that scores what is left.
    """

    trained_with = ADAM
    single_precision = True

    def __init__(
        self,
        encoder: Encoder,
        *,
        maps: int = 100,
        window: int = 3,
        layers: int = 3,
        max_words: int = 50,
        units: int = 50,
    ) -> None:
        super().__init__()
        self.encoder, self.window, self.max_words, self.maps = encoder, window, max_words, maps
        self.W_x = nn.Linear(window * encoder.size, maps)  # holds b^(1)
        self.W_y = nn.Linear(window * encoder.size, maps, bias=False)
        self.layers = nn.ModuleList(GatedConvolution2d(maps, maps, window) for _ in range(layers - 1))
        self.places = -(-max_words // 2**layers)
        self.head = MLP(self.places**2 * maps, units)

    def encode(self, texts: Texts) -> Tensor:
        """What the windows bring to z^(2) as left and as right ones, pooled by two. (N, ceil(L / 2), 2 * maps)"""
        return pairs_max(self.products(texts), -torch.inf)

    def products(self, texts: Texts) -> Tensor:
        """W_x x_i + b and W_y x_i for the window that begins at each word; -inf, a closed gate, where there is no word.

        (N, L, 2 * maps)
        """
        mask = texts.mask[:, : self.max_words, None]
        x = windows(self.encoder(texts)[:, : self.max_words] * mask, self.window)
        if self.single:
            x = x.float()
        both = torch.cat([linear(x, self.W_x), linear(x, self.W_y)], 2)
        return both.masked_fill(~mask, -torch.inf)

    def meet(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """relu(W [x_i ; y_j] + b) for all i, j, or of pooled windows. (B, maps, l, r), laid out as (B, l, r, maps)"""
        x = gather_rows(left, batch.left_rows)[:, :, None, : self.maps]
        y = gather_rows(right, batch.right_rows)[:, None, :, self.maps :]
        return (x + y).relu_().permute(0, 3, 1, 2)

    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,)."""
        return self.compose(self.meet(left, right, batch), batch)

    def compose(self, z: Tensor, batch: PairBatch) -> Tensor:
        """From z^(2), (B, maps, l, r), to the scores (B,)."""
        assert self.max_words is not None
        m, n = (size.clamp_max(self.max_words) for size in batch.sizes)
        for layer in self.layers:
            m, n = (m + 1) // 2, (n + 1) // 2
            z = max_pool2d(layer(z, m, n), 2, ceil_mode=True)  # z^(3) and z^(4), z^(5) and z^(6)
        z = pad(z, (0, self.places - z.shape[3], 0, self.places - z.shape[2]))  # silent units
        score: Tensor = self.head(z.flatten(1).to(self.head.W_r.weight.dtype))
        return score

    def trace(self, batch: PairBatch) -> list[Trace]:
        """Every pair of windows with a contribution; a window stands at its first word, a cell for the sum of its maps.

        The network is linear around each pair's z^(1): contributions are value times slope, exactly; the residual is
        biases above, and what the kernels that score round off.
        """
        with torch.no_grad():
            z = self.meet(self.products(batch.left), self.products(batch.right), batch)  # (B, maps, L, R)   z^(1)
            scores = self.compose(max_pool2d(z, 2, ceil_mode=True), batch)
        z = z.to(self.head.W_r.weight.dtype)
        _, contributions = linear_contributions(lambda z: self.compose(max_pool2d(z, 2, ceil_mode=True), batch), z)
        traces = []
        for b, (score, L, R) in enumerate(zip(scores.tolist(), *map(Tensor.tolist, batch.sizes), strict=True)):
            unread = (0, R - min(R, z.shape[3]), 0, L - min(L, z.shape[2]))  # words behind have no value
            values, added = (pad(x[b].sum(0)[None, :L, :R], unread) for x in (z, contributions))
            traces.append(grid_trace(score, values, added, ["windows"]))
        return traces
