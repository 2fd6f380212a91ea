"""The native transformer, every build that this processor runs, against torch in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from matchloom.kernels import native
from matchloom.kernels.transformer import PackedLayers

pytestmark = pytest.mark.skipif(native.library() is None, reason="the native kernels are absent or switched off")
EPSILON = 1e-6
Weights = dict[str, tuple[Tensor, Tensor]]


def weights(D: int, inner: int, layers: int) -> tuple[list[Weights], tuple[Tensor, Tensor]]:
    torch.manual_seed(D + inner)
    shapes = {"qkv": (D, 3 * D), "out": (D, D), "up": (D, inner), "down": (inner, D)}

    def norm() -> tuple[Tensor, Tensor]:
        return 1 + 0.3 * torch.randn(D), 0.3 * torch.randn(D)

    def one() -> Weights:
        made = {name: (torch.randn(a, b) / a**0.5, torch.randn(b)) for name, (a, b) in shapes.items()}
        return {**made, "first": norm(), "second": norm()}

    return [one() for _ in range(layers)], norm()


def in_double(x: Tensor, layers: list[Weights], norm: tuple[Tensor, Tensor], heads: int, tanh: bool) -> Tensor:
    """One text, (P, D)."""
    P, D = x.shape

    def of(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return pair[0].double(), pair[1].double()

    def linear(x: Tensor, pair: tuple[Tensor, Tensor]) -> Tensor:
        w, b = of(pair)
        return x @ w + b

    x = layer_norm(x.double(), (D,), *of(norm), EPSILON)
    for one in layers:
        q, k, v = linear(x, one["qkv"]).view(P, 3, heads, D // heads).permute(1, 2, 0, 3)
        seen = scaled_dot_product_attention(q, k, v).transpose(0, 1).reshape(P, D)
        x = layer_norm(x + linear(seen, one["out"]), (D,), *of(one["first"]), EPSILON)
        inner = gelu(linear(x, one["up"]), approximate="tanh" if tanh else "none")
        x = layer_norm(x + linear(inner, one["down"]), (D,), *of(one["second"]), EPSILON)
    return x


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("tanh", [False, True])
@pytest.mark.parametrize("sizes", [(6, 1, 5), (20, 2, 33), (64, 4, 128), (160, 2, 100)], ids=str)
def test_texts_end_to_end_are_read_as_each_alone_in_double_precision(sizes: tuple[int, int, int], tanh: bool) -> None:
    D, heads, inner = sizes
    layers, norm = weights(D, inner, 2)
    packed = PackedLayers(layers, norm, heads=heads, epsilon=EPSILON, tanh=tanh)
    lengths = np.array([3, 1, 17, 64, 7, 90, 6, 12, 500, 2])
    x = torch.randn(int(lengths.sum()), D)
    before = x.clone()
    found = packed(x, lengths)
    assert torch.equal(x, before)
    start = 0
    for P in lengths.tolist():
        own, start = slice(start, start + P), start + P
        torch.testing.assert_close(found[own].double(), in_double(x[own], layers, norm, heads, tanh), rtol=0, atol=1e-5)
        assert torch.equal(packed(x[own], np.array([P])), found[own])
    back = np.arange(len(lengths))[::-1]
    parts = x.split(lengths.tolist())
    turned = packed(torch.cat([parts[n] for n in back]), lengths[back])
    assert torch.equal(torch.cat(turned.split(lengths[back].tolist())[::-1]), found)
    before_threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert torch.equal(packed(x, lengths), found)
    finally:
        torch.set_num_threads(before_threads)


def test_wrong_sizes_and_types_are_refused() -> None:
    layers, norm = weights(8, 4, 1)
    packed = PackedLayers(layers, norm, heads=2, epsilon=EPSILON, tanh=False)
    for x, lengths in ((torch.zeros(3, 8), [2]), (torch.zeros(3, 7), [3]), (torch.zeros(3, 8), [3, 0])):
        with pytest.raises(ValueError, match="x must be"):
            packed(x, np.array(lengths))
    with pytest.raises(ValueError, match="float32"):
        packed(torch.zeros(3, 8).double(), np.array([3]))
    with pytest.raises(ValueError, match="heads divide 8"):
        PackedLayers(layers, norm, heads=3, epsilon=EPSILON, tanh=False)
    assert packed(torch.zeros(0, 8), np.array([], dtype=np.int64)).shape == (0, 8)
