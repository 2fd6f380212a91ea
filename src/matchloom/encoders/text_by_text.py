"""A transformer whose numbers depend on the text alone, to the last digit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from matchloom.basics.parallel import inline_pool
from matchloom.batches import Pieces, Texts
from matchloom.encoders.base import Encoder
from matchloom.encoders.pooling import mean_of, pieces_of, words_of
from matchloom.kernels import products

if TYPE_CHECKING:
    from matchloom.encoders.transformer import Transformer


_TOGETHER = 2048  # pieces that are read in one call
_WHOLE = 32  # numbers that torch's GELU takes at once; what is left over at the end it computes otherwise


class TextByText(Encoder):
    """A transformer that reads every text unpadded and on one thread: nothing else can move its last digit.

    This gives what double precision gives to other encoders (`models/float64_copy.py`), in half the time. What comes
    out is in double precision, in which the model above goes on. Its weights are the transformer's, not a copy, but for
    those that the native kernel has packed.

    Where the kernels serve, texts of as many pieces are read together: products are row by row alike
    (`kernels/products.py`), attention works on one text and head at a time, and all else on one row or number. Without
    kernels every text is read alone.
    """

    vocabulary = None
    reads_pairs = True

    def __init__(self, transformer: Transformer) -> None:
        super().__init__()
        self.size = transformer.size
        self._transformer = [transformer]  # in a list: it is not a part of this one, and stays in its precision
        self._packed: dict[nn.Linear, products.Packed] = {}

    def forward(self, texts: Texts) -> Tensor:
        """(N, L, D)"""
        return words_of(self._positions(texts), pieces_of(texts), texts.words.shape[1])

    def mean(self, texts: Texts) -> Tensor:
        """(N, D)"""
        return mean_of(self._positions(texts), pieces_of(texts))

    def shares(self, texts: Texts) -> Tensor:
        """(N, L)"""
        return self._transformer[0].shares(texts)

    def seen(self, texts: Texts) -> Tensor:
        """(N, L)"""
        return self._transformer[0].seen(texts)

    def together(self, left: Texts, right: Texts, links: Tensor | None = None) -> Tensor:
        """Pair by pair. (B, D)"""
        found = []
        with inline_pool(1):
            for n in range(len(left.words)):
                linked = None if links is None else links[n : n + 1].float()
                found.append(self._transformer[0].together(_alone(left, n), _alone(right, n), linked))
        return torch.cat(found).double()

    def settings(self) -> dict[str, Any]:
        """Those of the transformer."""
        return self._transformer[0].settings()

    @property
    def device(self) -> torch.device:
        """Where the transformer is."""
        return self._transformer[0].device

    def _positions(self, texts: Texts) -> Tensor:
        pieces = pieces_of(texts)
        x = torch.zeros(*pieces.ids.shape, self.size, dtype=torch.float64, device=pieces.ids.device)
        transformer = self._transformer[0]
        together = products.serves(transformer.words) and transformer.shape.inner % _WHOLE == 0
        with inline_pool(1):  # a second thread would part sums in another way
            for rows, length in _of_one_length(pieces.lengths, _TOGETHER if together else 0):
                own = Pieces(pieces.ids[rows, :length], pieces.words[rows, :length], pieces.lengths[rows])
                x[rows, :length] = transformer.positions(own, *([self._multiply] if together else [])).double()
        return x

    def _multiply(self, x: Tensor, layer: nn.Linear) -> Tensor:
        packed = self._packed.get(layer)
        if packed is None:
            packed = self._packed[layer] = products.Packed(layer.weight.detach().T, layer.bias.detach())
        return packed(x)


def _of_one_length(lengths: Tensor, most: int) -> Iterator[tuple[Tensor, int]]:
    """The rows of texts with as many pieces, at most so many pieces together and at least one text; and that length."""
    own = lengths.cpu().numpy()
    order = np.argsort(own, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(own[order])) + 1):
        length = int(own[rows[0]])
        step = max(1, most // length)
        for start in range(0, len(rows), step):
            yield torch.from_numpy(rows[start : start + step]), length


def _alone(texts: Texts, n: int) -> Texts:
    """The n-th text without padding of its pieces."""
    pieces, row = pieces_of(texts), slice(n, n + 1)
    length = int(pieces.lengths[n])
    own = Pieces(pieces.ids[row, :length], pieces.words[row, :length], pieces.lengths[row])
    return Texts(texts.words[row], texts.lengths[row], None, own)
