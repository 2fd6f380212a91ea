"""A transformer whose numbers depend on the text alone, to the last digit."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from matchloom.basics.parallel import inline_pool
from matchloom.batches import Pieces, Texts
from matchloom.encoders.base import Encoder
from matchloom.encoders.pooling import pieces_of, pooled, words_of
from matchloom.encoders.shape import ACTIVATIONS
from matchloom.kernels import products
from matchloom.kernels.transformer import PackedLayers

if TYPE_CHECKING:
    from matchloom.encoders.transformer import Transformer


class TextByText(Encoder):
    """A transformer that reads every text unpadded and by itself: nothing else can move its last digit.

    This gives what double precision gives to other encoders (`models/float64_copy.py`), in less time. What comes out is
    in double precision, in which the model above goes on. Its weights are the transformer's, not a copy, but for those
    that the native kernel has packed.

    Where the kernels serve (`kernels/transformer.py`) many texts are laid end to end and go through a layer together.
    Without kernels every text is read alone, on one thread.
    """

    vocabulary = None
    reads_pairs = True

    def __init__(self, transformer: Transformer) -> None:
        super().__init__()
        self.size = transformer.size
        self._transformer = [transformer]  # in a list: it is not a part of this one, and stays in its precision
        self._packed: PackedLayers | None = None
        self._packing = Lock()

    def forward(self, texts: Texts) -> Tensor:
        """(N, L, D)"""
        return words_of(self._positions(texts), pieces_of(texts), texts.words.shape[1])

    def mean(self, texts: Texts) -> Tensor:
        """(N, D)"""
        pieces = pieces_of(texts)
        return pooled(self._positions(texts), pieces.mask, pieces.lengths, self._transformer[0].pooling)

    def shares(self, texts: Texts) -> Tensor:
        """(N, L)"""
        return self._transformer[0].shares(texts)

    def seen(self, texts: Texts) -> Tensor:
        """(N, L)"""
        return self._transformer[0].seen(texts)

    def together(self, left: Texts, right: Texts, links: Tensor | None = None) -> Tensor:
        """Pair by pair. (B, D)"""
        transformer = self._transformer[0]
        if links is None and self._serves():
            x, pieces = transformer.embed_pairs(left, right)
            firsts = pieces.lengths.cumsum(0) - pieces.lengths
            return self._layers()(x[pieces.mask], pieces.lengths.numpy())[firsts].double()
        found = []
        with inline_pool(1):
            for n in range(len(left.words)):
                linked = None if links is None else links[n : n + 1].float()
                found.append(transformer.together(_alone(left, n), _alone(right, n), linked))
        return torch.cat(found).double()

    def settings(self) -> dict[str, Any]:
        """Those of the transformer."""
        return self._transformer[0].settings()

    @property
    def device(self) -> torch.device:
        """Where the transformer is."""
        return self._transformer[0].device

    def positions(self, pieces: Pieces) -> Tensor:
        """The vectors of all pieces behind the last layer, in float32; 0 behind a text. (N, P, D)"""
        transformer = self._transformer[0]
        known = transformer.known(pieces)
        if known is not None:
            return known
        x = torch.zeros(*pieces.ids.shape, self.size, device=pieces.ids.device)
        if self._serves():
            x[pieces.mask] = self._layers()(transformer.embed(pieces)[pieces.mask], pieces.lengths.numpy())
            return x
        with inline_pool(1):  # a second thread would part sums in another way
            for n, length in enumerate(pieces.lengths.tolist()):
                x[n, :length] = transformer.positions(_cut(pieces, n))[0]
        return x

    def _positions(self, texts: Texts) -> Tensor:
        return self.positions(pieces_of(texts)).double()

    def _serves(self) -> bool:
        transformer = self._transformer[0]
        return products.serves(*transformer.parameters()) and not (transformer.training and transformer.learns)

    def _layers(self) -> PackedLayers:
        with self._packing:  # threads ask at the same time
            if self._packed is None:
                transformer = self._transformer[0]
                shape, norm = transformer.shape, transformer.norm
                self._packed = PackedLayers(
                    [{name: _weights(part) for name, part in layer.named_children()} for layer in transformer.layers],
                    _weights(norm),
                    heads=shape.heads,
                    epsilon=shape.epsilon,
                    tanh=ACTIVATIONS[shape.activation] == "tanh",
                )
            return self._packed


def _weights(part: nn.Module) -> tuple[Tensor, Tensor]:
    """Of a product (inputs, outputs), of a normalisation (D,); and the bias."""
    weight, bias = part.parameters()
    return weight.T if weight.dim() == 2 else weight, bias


def _cut(pieces: Pieces, n: int) -> Pieces:
    """The n-th text without padding."""
    row, length = slice(n, n + 1), int(pieces.lengths[n])
    return Pieces(pieces.ids[row, :length], pieces.words[row, :length], pieces.lengths[row])


def _alone(texts: Texts, n: int) -> Texts:
    """The n-th text without padding of its pieces."""
    return Texts(texts.words[n : n + 1], texts.lengths[n : n + 1], None, _cut(pieces_of(texts), n))
