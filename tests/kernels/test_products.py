"""Products, convolutions, lengths and tanh, every build that this processor runs, against torch in double precision."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import conv2d, normalize

from matchloom.kernels import native, products

pytestmark = pytest.mark.skipif(native.library() is None, reason="the native kernels are absent or switched off")


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("sizes", [(1, 1, 1), (13, 40, 77), (7, 3, 16), (6, 100, 129), (50, 50, 404)], ids=str)
def test_products_are_torchs_and_rows_know_nothing_of_each_other(sizes: tuple[int, int, int]) -> None:
    M, K, N = sizes
    torch.manual_seed(K)
    x, w, b = torch.randn(M, K), torch.randn(K, N), torch.randn(N)
    found = products.product(x, w, b)
    torch.testing.assert_close(found.double(), x.double() @ w.double() + b, rtol=1e-5, atol=1e-5)
    for n in range(M):
        assert torch.equal(products.product(x[n], w, b), found[n])
    assert torch.equal(products.product(x, w[:, : N // 2 + 1], b[: N // 2 + 1]), found[:, : N // 2 + 1])
    assert products.product(x[:0], w).shape == (0, N)


@pytest.mark.usefixtures("build")
def test_rows_get_a_length_of_one_and_its_gradient() -> None:
    x = torch.randn(9, 21)
    x[3] = 0
    x.requires_grad_()
    exact = x.detach().double().requires_grad_()
    found, expected = products.l2_normalize_rows(x), normalize(exact, dim=1)
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-6)
    up = torch.randn(9, 21)
    up[3] = 0
    (own,) = torch.autograd.grad(found, x, up)
    (other,) = torch.autograd.grad(expected, exact, up.double())
    torch.testing.assert_close(own.double(), other, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("build")
def test_tanh_is_the_same_wherever_a_number_stands() -> None:
    x = torch.cat([torch.linspace(-12, 12, 500), torch.tensor([0.0, -0.0, 300.0, -300.0])])
    found = products.tanh(x)
    torch.testing.assert_close(found, torch.tanh(x), rtol=0, atol=1e-6)
    assert torch.equal(torch.cat([products.tanh(one[None]) for one in x]), found)


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("sizes", [(1, 8, 5), (5, 7, 3), (3, 70, 2), (100, 100, 3)], ids=str)
def test_a_map_is_convolved_within_its_own_size(sizes: tuple[int, int, int]) -> None:
    C, maps, side = sizes
    torch.manual_seed(C)
    x, w, b = torch.randn(3, 9, 8, C), torch.randn(maps, C, side, side), torch.randn(maps)
    heights, widths, pad = torch.tensor([9, 4, 1]), torch.tensor([8, 3, 0]), side // 2
    found = products.convolve(x, heights, widths, w, b, above=pad, before=pad)
    for n, (h, v) in enumerate(zip(heights.tolist(), widths.tolist(), strict=True)):
        own = x[n : n + 1, :h, :v].permute(0, 3, 1, 2).double()
        if own.numel():
            expected = conv2d(own, w.double(), b.double(), padding=side - 1)[0].permute(1, 2, 0)
            at = side - 1 - pad
            torch.testing.assert_close(found[n, :h, :v].double(), expected[at:, at:][:h, :v], rtol=1e-5, atol=1e-4)
            alone = products.convolve(
                x[n : n + 1, :h, :v], heights[n : n + 1], widths[n : n + 1], w, b, above=pad, before=pad
            )
            assert torch.equal(alone[0], found[n, :h, :v])
        assert not found[n, h:].any()
        assert not found[n, :, v:].any()


def test_wrong_sizes_and_types_are_refused() -> None:
    x, w = torch.randn(2, 3), torch.randn(3, 4)
    with pytest.raises(ValueError, match="must end in"):
        products.product(x, w[:2])
    with pytest.raises(ValueError, match="bias must have 4"):
        products.product(x, w, torch.zeros(3))
    with pytest.raises(ValueError, match="float32"):
        products.product(x.double(), w.double())
    maps, kernel, two = torch.randn(2, 3, 3, 1), torch.randn(4, 1, 3, 3), torch.tensor([3, 3])
    for sizes in (two + 1, two[:1], two - 4):
        with pytest.raises(ValueError, match="heights and widths"):
            products.convolve(maps, sizes, two, kernel, torch.zeros(4))
    with pytest.raises(ValueError, match="do not fit"):
        products.convolve(maps, two, two, kernel, torch.zeros(4), above=3)
