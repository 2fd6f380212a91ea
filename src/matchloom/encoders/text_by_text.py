"""A transformer whose numbers depend on the text alone, to the last digit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from matchloom.basics.parallel import inline_pool
from matchloom.batches import Pieces, Texts
from matchloom.encoders.base import Encoder
from matchloom.encoders.pooling import mean_of, pieces_of, words_of

if TYPE_CHECKING:
    from matchloom.encoders.transformer import Transformer


class TextByText(Encoder):
    """A transformer that reads every text alone, unpadded and on one thread: nothing else can move its last digit.

    This gives what double precision gives to other encoders (`models/float64_copy.py`), in half the time: a layer's
    products are large enough to be as fast for one text as for many. What comes out is in double precision, in which
    the model above goes on. Its weights are the transformer's, not a copy.
    """

    vocabulary = None
    reads_pairs = True

    def __init__(self, transformer: Transformer) -> None:
        super().__init__()
        self.size = transformer.size
        self._transformer = [transformer]  # in a list: it is not a part of this one, and stays in its precision

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
        with inline_pool(1):  # a second thread would part sums in another way
            for n, length in enumerate(pieces.lengths.tolist()):
                x[n, :length] = self._transformer[0].positions(pieces_of(_alone(texts, n)))[0]
        return x


def _alone(texts: Texts, n: int) -> Texts:
    """The n-th text without padding of its pieces."""
    pieces, row = pieces_of(texts), slice(n, n + 1)
    length = int(pieces.lengths[n])
    own = Pieces(pieces.ids[row, :length], pieces.words[row, :length], pieces.lengths[row])
    return Texts(texts.words[row], texts.lengths[row], None, own)
