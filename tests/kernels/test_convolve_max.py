"""Convolutions of which the largest of each cell is kept, every build that this processor runs, against torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d, max_pool2d, pad

from matchloom.kernels import native
from matchloom.kernels.convolve_max import Pooled, convolve_max
from matchloom.layers.dynamic_pooling import dynamic_max

pytestmark = pytest.mark.skipif(native.library() is None, reason="the native kernels are absent or switched off")
# maps, channels, rows, columns, outputs, window's rows, window's columns, size of the grid, side of its squares
SIZES = [
    (40, 1, 50, 50, 8, 5, 5, 10, 0),
    (5, 8, 10, 10, 16, 3, 3, 0, 2),
    (7, 3, 9, 33, 5, 2, 4, 4, 0),
    (3, 2, 5, 7, 9, 1, 17, 6, 0),
    (4, 2, 7, 5, 3, 4, 2, 0, 3),
    (2, 1, 1, 1, 1, 3, 3, 1, 0),
]


def drawn(sizes: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor, Pooled]:
    """Maps with numbers outside their own cells too, which nobody may read."""
    B, C, h, width, O, kh, kw, size, window = sizes  # noqa: E741
    torch.manual_seed(sum(sizes))
    x, w, bias = torch.randn(B, h, C, width).transpose(1, 2), torch.randn(O, C, kh, kw), torch.randn(O)
    heights, widths = (torch.randint(1, side + 1, (B,)) for side in (h, width))
    if window:
        heights, widths = torch.full((B,), h), torch.full((B,), width)
    return x, w, bias, Pooled(heights, widths, kh // 2, kw // 2, size, window)


def by_torch(x: Tensor, w: Tensor, bias: Tensor, pooled: Pooled) -> Tensor:
    h, width = x.shape[2:]
    rows, columns = (torch.arange(side) < own[:, None] for side, own in ((h, pooled.heights), (width, pooled.widths)))
    x = x * (rows[:, None, :, None] & columns[:, None, None])
    kh, kw = w.shape[2:]
    around = (pooled.before, kw - 1 - pooled.before, pooled.above, kh - 1 - pooled.above)
    z = conv2d(pad(x, around), w, bias)
    if pooled.window:
        return torch.relu(max_pool2d(z, pooled.window, ceil_mode=True))
    return torch.relu(dynamic_max(z, pooled.heights, pooled.widths, pooled.size))


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values_and_gradients_are_torchs(sizes: tuple[int, ...]) -> None:
    *given, pooled = drawn(sizes)
    own = [one.clone().requires_grad_() for one in given]
    double = [one.double().requires_grad_() for one in given]
    found, expected = convolve_max(*own, pooled), by_torch(*double, pooled)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)
    assert torch.equal(convolve_max(*given, pooled), found)
    up = torch.randn(found.shape)
    gradients = torch.autograd.grad(found, own, up), torch.autograd.grad(expected, double, up.double())
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_map_is_the_same_in_any_batch(sizes: tuple[int, ...]) -> None:
    x, w, bias, pooled = drawn(sizes)
    whole = convolve_max(x, w, bias, pooled)
    for n in range(len(x)):
        heights, widths = pooled.heights[n : n + 1], pooled.widths[n : n + 1]
        own = x[n : n + 1, :, : int(heights), : int(widths)]
        assert torch.equal(convolve_max(own, w, bias, pooled._replace(heights=heights, widths=widths))[0], whole[n])


@pytest.mark.usefixtures("build")
def test_threads_change_nothing() -> None:
    x, w, bias, pooled = drawn(SIZES[0])
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found.append(convolve_max(x, w, bias, pooled))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)


@pytest.mark.usefixtures("build")
def test_not_a_number_shows() -> None:
    x, w, bias, pooled = drawn(SIZES[0])
    x[3, 0, 0, 0] = torch.nan
    found = convolve_max(x, w, bias, pooled)
    assert found[3].isnan().any()
    assert not found[[0, 1, 2, *range(4, 40)]].isnan().any()


def test_of_equal_numbers_the_first_gets_the_gradient() -> None:
    x = torch.ones(1, 1, 4, 4, requires_grad=True)
    pooled = Pooled(torch.tensor([4]), torch.tensor([4]), 0, 0, size=2)
    out = convolve_max(x, torch.ones(1, 1, 1, 1), torch.zeros(1), pooled)
    (slope,) = torch.autograd.grad(out.sum(), x)
    assert slope[0, 0].nonzero().tolist() == [[0, 0], [0, 2], [2, 0], [2, 2]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"heights": torch.tensor([3])},
        {"heights": torch.zeros(40, dtype=torch.int64)},
        {"widths": torch.full((40,), 51)},
        {"widths": torch.full((40,), 3, dtype=torch.int32)},
        {"above": 5},
        {"size": 0},
        {"window": 2},
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(wrong: dict[str, object]) -> None:
    x, w, bias, pooled = drawn(SIZES[0])
    with pytest.raises(ValueError, match=r"maps"):
        convolve_max(x, w, bias, pooled._replace(**wrong))
