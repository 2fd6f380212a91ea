"""The wavefront against the cell-by-cell loop."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from matchloom.layers.spatial_gru import SpatialGRU, matching_path
from tests.drawing import examples
from tests.reference import spatial_gru as reference

VARIANTS = [{}, {"reverse": True}, {"reset": False}, {"tied": True}, {"reverse": True, "reset": False, "tied": True}]


def make_gru(channels: int, dimensions: int, seed: int = 0, **options: bool) -> SpatialGRU:
    """In double precision, with weights large enough that gates differ well."""
    torch.manual_seed(seed)
    gru = SpatialGRU(channels, dimensions, **options).double()
    with torch.no_grad():
        for parameter in gru.parameters():
            parameter.mul_(10)
    return gru


def make_grids(sizes: list[tuple[int, int]], channels: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Interactions with padding that would show if it were read."""
    m, n = torch.tensor(sizes).unbind(1)
    generator = torch.Generator().manual_seed(seed)
    s = torch.randn(len(sizes), channels, int(m.max()) + 1, int(n.max()) + 2, generator=generator, dtype=torch.double)
    return s, m, n


SIZES = [(1, 1), (1, 6), (5, 1), (4, 7), (6, 2), (5, 5)]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_every_cell_equals_the_loop(options: dict[str, bool]) -> None:
    gru = make_gru(3, 4, **options)
    s, m, n = make_grids(SIZES, 3)
    h, z = gru.scan(s, m, n)
    for b, (rows, columns) in enumerate(SIZES):
        expected_h, expected_z = reference.scan(gru, s[b, :, :rows, :columns])
        for i in range(rows):
            for j in range(columns):
                torch.testing.assert_close(h[b, :, i, j], expected_h[i][j], rtol=1e-12, atol=1e-12)
                torch.testing.assert_close(z[b, :, :, i, j], expected_z[i][j], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_ends_and_gradients_equal_the_loop(options: dict[str, bool]) -> None:
    gru = make_gru(3, 4, **options)
    s, m, n = make_grids(SIZES, 3)
    s.requires_grad_()
    inputs = [s, *gru.parameters()]
    ends = gru(s, m, n)
    expected = torch.stack([reference.end(gru, s[b, :, :i, :j]) for b, (i, j) in enumerate(SIZES)])
    torch.testing.assert_close(ends, expected, rtol=1e-12, atol=1e-12)
    weights = torch.linspace(-1, 2, ends.numel(), dtype=torch.double).view_as(ends)
    ours = torch.autograd.grad((ends * weights).sum(), inputs)
    theirs = torch.autograd.grad((expected * weights).sum(), inputs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@examples(25)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=3),
    channels=st.integers(1, 5),
    dimensions=st.integers(1, 5),
    seed=st.integers(0, 99),
    options=st.sampled_from(VARIANTS),
)
def test_any_shape_equals_the_loop(sizes, channels, dimensions, seed, options) -> None:
    gru = make_gru(channels, dimensions, seed, **options)
    s, m, n = make_grids(sizes, channels, seed)
    expected = [reference.end(gru, s[b, :, :i, :j]) for b, (i, j) in enumerate(sizes)]
    torch.testing.assert_close(gru(s, m, n), torch.stack(expected), rtol=1e-11, atol=1e-12)


def test_gates_add_up_to_one_and_tied_ones_are_alike() -> None:
    s, m, n = make_grids(SIZES, 2)
    _, z = make_gru(2, 3, tied=True).scan(s, m, n)
    torch.testing.assert_close(z.sum(1), torch.ones_like(z[:, 0]))
    torch.testing.assert_close(z, z[:, :, :1].expand_as(z))
    _, free = make_gru(2, 3).scan(s, m, n)
    assert (free - free[:, :, :1]).abs().max() > 0.1


def test_path_follows_the_largest_gate() -> None:
    # ABCDE against FACGD, as in the paper's Figure 4: A, C and D are met on the diagonal.
    z = torch.full((4, 1, 5, 5), 0.4)
    for (i, j), (left, top, diagonal) in {
        (4, 4): (0.9, 0.1, 0.0),
        (4, 3): (0.1, 0.8, 0.1),
        (3, 3): (0.0, 0.1, 0.7),
        (2, 2): (0.0, 0.1, 0.9),
        (1, 1): (0.1, 0.8, 0.1),
        (0, 1): (0.1, 0.0, 0.8),
    }.items():
        z[1:, 0, i, j] = torch.tensor([left, top, diagonal])
    assert matching_path(z) == [(0, 1), (1, 1), (2, 2), (3, 3), (4, 3), (4, 4)]


def test_path_ends_where_it_leaves_the_grid() -> None:
    z = torch.zeros(4, 2, 3, 3)
    z[1] = 1.0  # always from the left
    assert matching_path(z) == [(2, 0), (2, 1), (2, 2)]
    z[3, 0] = 3.0  # the mean of both dimensions decides
    assert matching_path(z) == [(0, 0), (1, 1), (2, 2)]
