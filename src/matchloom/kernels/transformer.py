"""The native layers of a BERT-like transformer, over texts laid end to end: a text's numbers depend on it alone."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from matchloom.kernels.native import LayerWeights, TransformerTask, run
from matchloom.kernels.products import Packed, loaded, taken

_ROWS = 384  # pieces that go through a layer together: its weights are then read from memory seldom enough
_MATRICES = ("qkv", "out", "up", "down")
_NORMS = ("first", "second")


class PackedLayers:
    """The weights of all layers as the kernel reads them.

    `layers` has for each layer its matrices (K, C) and vectors (C,) by the kernel's names, `norm` the weight and the
    bias of the normalisation below the first layer.
    """

    def __init__(
        self,
        layers: Sequence[Mapping[str, tuple[Tensor, Tensor]]],
        norm: tuple[Tensor, Tensor],
        *,
        heads: int,
        epsilon: float,
        tanh: bool,
    ) -> None:
        self.norm = taken(*norm)
        self.size = D = len(self.norm[0])
        self.inner = layers[0]["up"][0].shape[1]
        shapes: dict[str, tuple[int, ...]] = {
            "qkv": (D, 3 * D),
            "out": (D, D),
            "up": (D, self.inner),
            "down": (self.inner, D),
        }
        shapes |= dict.fromkeys(_NORMS, (D,))
        if D % heads or any(layer[name][0].shape != shape for layer in layers for name, shape in shapes.items()):
            raise ValueError(f"the weights of a layer must have the shapes {shapes}, and {heads} heads divide {D}")
        self._held: list[Tensor | Packed] = []  # every array whose address the tasks have
        self._weights = (LayerWeights * len(layers))(*(LayerWeights(**self._places(layer)) for layer in layers))
        self._about = (D, heads, self.inner, len(layers), tanh, epsilon)

    def _places(self, layer: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, int]:
        places: dict[str, int] = {}
        for name in _MATRICES:
            packed = Packed(layer[name][0].detach(), layer[name][1])
            assert packed.bias is not None
            self._held.append(packed)
            places |= {name: packed.w.data_ptr(), f"{name}_bias": packed.bias.data_ptr()}
        for name in _NORMS:
            weight, bias = taken(*layer[name])
            self._held += [weight, bias]
            places |= {name: weight.data_ptr(), f"{name}_bias": bias.data_ptr()}
        return places

    def __call__(self, x: Tensor, lengths: NDArray[np.int64]) -> Tensor:
        """The vectors behind the last layer of texts that lie end to end, so many pieces each. (R, D) -> (R, D)"""
        x = taken(x)[0].clone()
        lengths = np.ascontiguousarray(lengths, dtype=np.int64)
        if x.shape != (int(lengths.sum()), self.size) or (lengths < 1).any():
            raise ValueError(f"x must be ({int(lengths.sum())}, {self.size}), found {tuple(x.shape)}")
        starts = np.concatenate([[0], np.cumsum(lengths)])
        weights, norm = ctypes.addressof(self._weights), [one.data_ptr() for one in self.norm]
        tasks = []
        threads = torch.get_num_threads()
        for first, last in _groups(starts, min(_ROWS, -(-len(x) // threads))):
            task = TransformerTask(*self._about, last - first, starts[first:].ctypes.data)
            task.weights, (task.norm, task.norm_bias) = weights, norm
            task.x = x.data_ptr() + 4 * self.size * int(starts[first])
            tasks.append(task)
        run(loaded().transformer, tasks, threads, "transformer")
        return x


def _groups(starts: NDArray[np.int64], rows: int) -> list[tuple[int, int]]:
    """Neighbouring texts of so many pieces together, at least one: the first of each, and the next one's first."""
    groups, first, count = [], 0, len(starts) - 1
    while first < count:
        last = int(np.searchsorted(starts, starts[first] + rows, side="right")) - 1
        groups.append((first, max(first + 1, last)))
        first = groups[-1][1]
    return groups
