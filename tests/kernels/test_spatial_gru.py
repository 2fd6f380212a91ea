"""The native kernel, every build that this processor runs, against the wavefront in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from matchloom.kernels import native
from matchloom.kernels import spatial_gru as kernel
from matchloom.layers.spatial_gru import SpatialGRU
from tests.drawing import examples
from tests.reference import spatial_gru as reference

pytestmark = pytest.mark.skipif(native.library() is None, reason="the native kernel is absent or switched off")
BUILDS = native.suitable() or ["none"]
each_build = pytest.mark.parametrize("build", native.suitable())


def use(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = native.Library(build)
    monkeypatch.setattr(kernel, "library", lambda: loaded)


def make(
    channels: int, dimensions: int, sizes: list[tuple[int, int]], *, seed: int = 0, scale: float = 5, **options: bool
) -> tuple[SpatialGRU, SpatialGRU, Tensor, Tensor, Tensor]:
    """The same GRU in single and in double precision, and grids whose padding would show if it were read."""
    torch.manual_seed(seed)
    single = SpatialGRU(channels, dimensions, **options)
    with torch.no_grad():
        for parameter in single.parameters():
            parameter.mul_(scale)
    double = SpatialGRU(channels, dimensions, **options).double()
    double.load_state_dict(single.state_dict())
    m, n = torch.tensor(sizes).unbind(1)
    s = torch.randn(len(sizes), channels, int(m.max()) + 1, int(n.max()) + 2)
    return single, double, s, m, n


def check(gru: SpatialGRU, double: SpatialGRU, s: Tensor, m: Tensor, n: Tensor, limit: float = 1e-5) -> None:
    """Ends and all gradients agree, and the kernel did the work."""
    assert kernel.serves(s, gru.W)
    a, b = s.detach().clone().requires_grad_(), s.double().requires_grad_()
    ours, theirs = gru(a, m, n), double(b, m, n)
    torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=2e-6)
    with torch.no_grad():
        assert torch.equal(gru(s, m, n), ours)  # what keeps nothing computes the same
    weights = torch.randn(ours.shape)
    found = torch.autograd.grad((ours * weights).sum(), [a, *gru.parameters()])
    expected = torch.autograd.grad((theirs * weights).sum(), [b, *double.parameters()])
    # A gradient is a sum with terms of every cell, near 1 in size and known to 6e-8; their errors add up like a random
    # walk. Where the terms cancel, the sum is short and its error is not: hence the floor, an order above that walk.
    floor = 1e-6 * float((m * n).sum()) ** 0.5
    for x, y in zip(found, expected, strict=True):
        assert (x - y).norm() < limit * y.norm() + floor


def test_equals_the_loop() -> None:
    sizes = [(4, 7), (1, 1), (3, 2)]
    for reverse in (False, True):
        gru, double, s, m, n = make(3, 4, sizes, reverse=reverse)
        loop = [reference.end(double, s[b, :, :i, :j].double()) for b, (i, j) in enumerate(sizes)]
        torch.testing.assert_close(gru(s, m, n).double(), torch.stack(loop), rtol=0, atol=1e-6)


@each_build
@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"reset": False}, {"tied": True}], ids=str)
def test_papers_size_and_every_option(build: str, options: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    use(build, monkeypatch)
    draw = np.random.default_rng(0)
    sizes = [(int(i), int(j)) for i, j in draw.integers(1, 15, (70, 2))]
    check(*make(10, 10, sizes, **options))


@each_build
def test_gradients_of_long_texts_stay_exact(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(build, monkeypatch)
    gru, double, s, m, n = make(10, 10, [(50, 50)] * 4, scale=1)
    check(gru, double, s[:, :, :50, :50], m, n)


@examples(60)
@example(build=BUILDS[0], sizes=[(1, 6)], channels=1, dimensions=1, threads=1, seed=0, reverse=False)
@given(
    build=st.sampled_from(BUILDS),
    sizes=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=40),
    channels=st.integers(1, 12),
    dimensions=st.integers(1, 12),
    threads=st.integers(1, 3),
    seed=st.integers(0, 99),
    reverse=st.booleans(),
)
def test_any_shape(monkeypatch, build, sizes, channels, dimensions, threads, seed, reverse) -> None:
    use(build, monkeypatch)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    check(*make(channels, dimensions, sizes, seed=seed, reverse=reverse))


@each_build
def test_rows_before_channels_in_memory(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(build, monkeypatch)
    gru, double, s, m, n = make(3, 4, [(4, 7), (1, 1), (3, 2)])
    turned = s.transpose(1, 2).contiguous().transpose(1, 2)
    assert not turned.is_contiguous()
    check(gru, double, turned, m, n)
    assert torch.equal(gru(turned, m, n), gru(s, m, n))
    (gradient,) = torch.autograd.grad(gru(turned.requires_grad_(), m, n).sum(), turned)
    assert gradient.stride() == turned.stride()
    every_second = torch.randn(3, 3, 5, 18)[:, :, :, ::2]
    assert torch.equal(gru(every_second, m, n), gru(every_second.contiguous(), m, n))


@each_build
def test_double_precision_without_gradients(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(build, monkeypatch)
    draw = np.random.default_rng(0)
    sizes = [(int(i), int(j)) for i, j in draw.integers(1, 15, (70, 2))]
    for options in ({}, {"reverse": True}, {"tied": True, "reset": False}):
        _, gru, s, m, n = make(10, 10, sizes, **options)
        by_torch = gru(s.double(), m, n).detach()  # with gradients, which the kernel leaves to torch
        with torch.no_grad():
            assert kernel.serves(s.double(), gru.W)
            torch.testing.assert_close(gru(s.double(), m, n), by_torch, rtol=0, atol=1e-13)
            torch.testing.assert_close(gru(s[:3].double(), m[:3], n[:3]), by_torch[:3], rtol=0, atol=1e-13)


@each_build
def test_large_values_saturate(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(build, monkeypatch)
    gru, double, s, m, n = make(2, 3, [(4, 4)] * 3, scale=1000)
    torch.testing.assert_close(gru(100 * s, m, n).double(), double(100 * s.double(), m, n), rtol=0, atol=1e-5)


@each_build
def test_nan_reaches_its_own_pair_alone(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(build, monkeypatch)
    gru, _, s, m, n = make(2, 3, [(4, 4), (3, 3), (4, 4)])
    s[1, 0, 3, 0] = s[1, 1, 0, 4] = torch.nan  # in padding: never read
    before = gru(s, m, n)
    assert torch.isfinite(before).all()
    s[0, 0, 2, 2] = torch.nan
    after = gru(s, m, n)
    assert torch.isnan(after[0]).all()
    assert torch.equal(after[1:], before[1:])


def test_padding_gets_no_gradient() -> None:
    gru, _, s, m, n = make(2, 3, [(2, 3), (4, 1)])
    s.requires_grad_()
    (gradient,) = torch.autograd.grad(gru(s, m, n).sum(), s)
    assert (gradient[0, :, :2, :3] != 0).all()
    assert (gradient[1, :, :4, :1] != 0).all()
    assert (gradient != 0).sum() == 2 * (2 * 3 + 4 * 1)


def test_other_types_and_empty_batches_go_to_torch() -> None:
    gru, double, s, m, n = make(2, 3, [(2, 3), (4, 1)])
    assert not kernel.serves(s.double(), double.W)
    assert not kernel.serves(s[:0], gru.W)
    assert gru(s[:0], m[:0], n[:0]).shape == (0, 3)


def test_what_would_reach_beyond_the_arrays_is_refused() -> None:
    gru, _, s, m, n = make(2, 3, [(2, 3), (4, 1)])
    weights = gru.weights()
    with pytest.raises(ValueError, match="m must have the shape"):
        kernel.spatial_gru(s, m + 4, n, *weights, reverse=False)
    with pytest.raises(ValueError, match="n must have the shape"):
        kernel.spatial_gru(s, m, n - 1, *weights, reverse=False)
    with pytest.raises(ValueError, match="weights of shapes"):
        kernel.spatial_gru(s[:, :1], m, n, *weights, reverse=False)


def test_torch_finds_the_operator_sound() -> None:
    gru, _, s, m, n = make(2, 3, [(2, 3), (4, 1)])
    weights = [x.detach().requires_grad_() for x in gru.weights()]
    arguments = (s.requires_grad_(), m, n, *weights, False, 2, True)
    torch.library.opcheck(kernel._forward, arguments, test_utils=["test_schema", "test_autograd_registration"])
    torch.library.opcheck(kernel._forward, arguments, test_utils="test_faketensor")


def test_groups_hold_every_pair_once_and_are_alike() -> None:
    draw = np.random.default_rng(0)
    m, n = draw.integers(5, 51, (2, 131))
    for threads in (1, 2, 5):
        cut = kernel.groups(m, n, 32, threads)
        assert sorted(np.concatenate(cut).tolist()) == list(range(131))
        assert max(map(len, cut)) <= 32
        padded = sum(int(m[x].max() * n[x].max()) * len(x) for x in cut)
        assert padded < 0.8 * m.max() * n.max() * 131
    assert [len(x) for x in kernel.groups(m[:20], n[:20], 32, 2)] == [10, 10]
    assert [len(x) for x in kernel.groups(m[:10], n[:10], 32, 2)] == [10]
