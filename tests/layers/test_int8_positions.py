"""Positions of eight bits: what they keep, what they say of themselves, and that no order of summation moves them."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from matchloom.batches import PairBatch, Texts
from matchloom.layers import int8_positions
from matchloom.layers.int8_positions import (
    WIDEST,
    int8_cosines,
    inverse_lengths,
    quantised,
    unit_positions,
    was_read,
)
from tests.drawing import examples


def positions(n: int, words: int, size: int, seed: int) -> torch.Tensor:
    return torch.randn(n, words, size, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def batch_of(left: torch.Tensor, right: torch.Tensor, left_rows: list[int], right_rows: list[int]) -> PairBatch:
    sides = (Texts(x[:, :, 0].long(), torch.full((len(x),), x.shape[1])) for x in (left, right))
    return PairBatch(*sides, torch.tensor(left_rows), torch.tensor(right_rows))


def all_read(x: torch.Tensor) -> torch.Tensor:
    return torch.ones(x.shape[:2], dtype=torch.bool)


def test_it_is_its_numbers_and_their_length() -> None:
    x = torch.tensor([[[1.0, -0.5, 0.25], [0.0, 0.0, 0.0], [9.0, 9.0, 9.0]]], dtype=torch.double)
    read = torch.tensor([[True, True, False]])
    found = quantised(x, read)
    squares = 127**2 + 64**2 + 32**2
    digits = [squares // 128**3, squares // 128**2 % 128, squares // 128 % 128, squares % 128]
    assert found.tolist() == [[[127, -64, 32, *digits], [0] * 7, [0, 0, 0, -1, -1, -1, -1]]]
    assert was_read(found).tolist() == read.tolist()
    torch.testing.assert_close(inverse_lengths(found, torch.double), torch.tensor([[squares**-0.5, 0, 0]]).double())


def test_the_longest_vector_has_digits_enough() -> None:
    widest = quantised(torch.ones(1, 1, 16_000, dtype=torch.double), torch.ones(1, 1, dtype=torch.bool))
    assert float(inverse_lengths(widest, torch.double)) ** -2 == 16_000 * 127**2


@examples(20)
@given(size=st.sampled_from([1, 2, 5, 128, 384, WIDEST, WIDEST + 1]), seed=st.integers(0, 99))
def test_cosines_are_exact_however_they_are_summed(size: int, seed: int) -> None:
    x, y = positions(2, 3, size, seed), positions(4, 5, size, seed + 1)
    left, right = quantised(x, all_read(x)), quantised(y, all_read(y))
    left_rows, right_rows = [0, 1, 1, 0, 0], [3, 2, 0, 0, 3]
    found = int8_cosines(left, right, batch_of(x, y, left_rows, right_rows), torch.double)
    whole = [side[:, :, :size].long() for side in (left, right)]
    lengths = [inverse_lengths(side, torch.double) for side in (left, right)]
    for n, (i, j) in enumerate(zip(left_rows, right_rows, strict=True)):
        products = (whole[0][i] @ whole[1][j].T).double()
        assert torch.equal(found[n], products * lengths[0][i][:, None] * lengths[1][j])
        alone = batch_of(x[i : i + 1], y[j : j + 1], [0], [0])
        assert torch.equal(found[n], int8_cosines(left[i : i + 1], right[j : j + 1], alone, torch.double)[0])
    one = batch_of(x[:1], y, [0] * 4, [0, 1, 2, 3])
    expected = int8_cosines(left[:1], right, one, torch.double)
    before = int8_positions._AT_A_TIME
    try:
        int8_positions._AT_A_TIME = 7 * size
        assert torch.equal(int8_cosines(left[:1], right, one, torch.double), expected)
    finally:
        int8_positions._AT_A_TIME = before


def test_cosines_are_near_and_those_of_equal_words_are_one() -> None:
    x, y = positions(1, 6, 384, 0), positions(1, 7, 384, 1)
    left, right = quantised(x, all_read(x)), quantised(y, all_read(y))
    exact = torch.nn.functional.normalize(x, dim=2) @ torch.nn.functional.normalize(y, dim=2).transpose(1, 2)
    assert (int8_cosines(left, right, batch_of(x, y, [0], [0]), torch.double) - exact).abs().max() < 0.004
    own = int8_cosines(left, left, batch_of(x, x, [0], [0]), torch.double)
    torch.testing.assert_close(own[0].diagonal(), torch.ones(6, dtype=torch.double), rtol=0, atol=1e-15)
    torch.testing.assert_close(unit_positions(left, torch.double).norm(dim=2), torch.ones(1, 6, dtype=torch.double))


def test_what_was_not_read_is_no_partner() -> None:
    x, y = positions(1, 2, 4, 0), positions(1, 3, 4, 1)
    y[0, 0] = 0  # read, and nothing in it
    read = torch.tensor([[True, False, True]])
    left, right = quantised(x, torch.tensor([[True, False]])), quantised(y, read)
    found = int8_cosines(left, right, batch_of(x, y, [0], [0]), torch.double)[0]
    assert torch.isfinite(found).tolist() == [[True, False, True], [False, False, False]]
    assert (found[~torch.isfinite(found)] == -torch.inf).all()
