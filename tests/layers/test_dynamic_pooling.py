"""Dynamic pooling against loops over cells."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from matchloom.layers.dynamic_pooling import dynamic_max, dynamic_min
from tests.drawing import examples
from tests.reference.pooling import cell, doubled


def drawn(B: int, L: int, R: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Maps of two channels, and how many rows and columns of each are its own."""
    generator = torch.Generator().manual_seed(seed)
    maps = torch.randn(B, 2, L, R, generator=generator)
    rows, columns = (torch.randint(1, side + 1, (B,), generator=generator) for side in (L, R))
    return maps, rows, columns


@examples(60)
@given(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.integers(0, 99))
def test_equals_the_largest_of_each_cell(B: int, L: int, R: int, size: int, seed: int) -> None:
    maps, rows, columns = drawn(B, L, R, seed)
    pooled = dynamic_max(maps, rows, columns, size)
    assert pooled.shape == (B, 2, size, size)
    for b in range(B):
        m, n = int(rows[b]), int(columns[b])
        for i in range(size):
            for j in range(size):
                held = maps[b, :, cell(i, m, size)][:, :, cell(j, n, size)]
                assert torch.equal(pooled[b, :, i, j], held.amax((1, 2)))


@examples(60)
@given(st.integers(1, 3), st.integers(1, 20), st.integers(1, 20), st.integers(1, 9), st.integers(0, 99))
def test_equals_the_smallest_of_each_cell_of_doubled_rows(B: int, L: int, R: int, size: int, seed: int) -> None:
    maps, rows, columns = drawn(B, L, R, seed)
    pooled = dynamic_min(maps, rows, columns, size)
    assert pooled.shape == (B, 2, size, size)
    for b in range(B):
        for i, above in enumerate(doubled(int(rows[b]), size)):
            for j, beside in enumerate(doubled(int(columns[b]), size)):
                assert torch.equal(pooled[b, :, i, j], maps[b][:, above][:, :, beside].amin((1, 2)))


def test_what_is_left_over_goes_to_the_last_cells() -> None:
    maps = torch.arange(8.0)[None, None, :, None]
    assert dynamic_min(maps, torch.tensor([8]), torch.tensor([1]), 3)[0, 0, :, 0].tolist() == [0, 2, 5]
    assert dynamic_min(maps, torch.tensor([3]), torch.tensor([1]), 5)[0, 0, :, 0].tolist() == [0, 0, 1, 1, 2]


@given(st.integers(1, 40), st.integers(1, 12))
def test_cells_cover_every_row_in_order(rows: int, size: int) -> None:
    held = [range(rows)[cell(a, rows, size)] for a in range(size)]
    assert sorted({row for part in held for row in part}) == list(range(rows))
    if rows >= size:
        assert [row for part in held for row in part] == list(range(rows))
        assert max(map(len, held)) - min(map(len, held)) <= 1


def test_what_lies_outside_gets_no_gradient() -> None:
    maps = torch.randn(2, 3, 6, 7, generator=torch.Generator().manual_seed(0), requires_grad=True)
    dynamic_max(maps, torch.tensor([2, 6]), torch.tensor([7, 3]), 4).sum().backward()
    assert maps.grad is not None
    assert not maps.grad[0, :, 2:].any()
    assert not maps.grad[1, :, :, 3:].any()
    assert maps.grad.sum() == 2 * 3 * 16
