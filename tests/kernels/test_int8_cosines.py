"""The native cosines of positions of eight bits, every build that this processor runs, against torch, bit by bit."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from matchloom.kernels import int8_cosines as kernel
from matchloom.kernels import native
from matchloom.layers import int8_positions
from matchloom.layers.int8_positions import DIGITS, int8_cosines, quantised

pytestmark = pytest.mark.skipif(native.library() is None, reason="the native kernels are absent or switched off")


def positions(draw: torch.Generator, *shape: int) -> Tensor:
    """Some of them not read, some 0 though they were read."""
    x = torch.randn(*shape, generator=draw)
    x[torch.rand(shape[:2], generator=draw) < 0.1] = 0.0
    return quantised(x, torch.rand(shape[:2], generator=draw) > 0.2)


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("seed", range(20))
def test_it_equals_torch_to_the_last_bit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = torch.Generator().manual_seed(seed)
    L, N, R, D = (int(torch.randint(1, most, (1,), generator=draw)) for most in (40, 6, 30, 200))
    left, right = positions(draw, 1, L, D), positions(draw, N, R, D)
    rows = torch.randint(0, N, (7,), generator=draw)
    batch = SimpleNamespace(left_rows=torch.zeros(7, dtype=torch.int64), right_rows=rows)
    found = int8_cosines(left, right, batch, torch.float64)
    monkeypatch.setattr(int8_positions.kernel, "serves", lambda *given: False)
    expected = int8_cosines(left, right, batch, torch.float64)
    assert found.shape == (7, L, R)
    assert torch.equal(found, expected)
    assert bool((found[found > -torch.inf].abs() < 1 + 1e-9).all())


@pytest.mark.usefixtures("build")
def test_the_widest_and_the_largest_numbers_do_not_overflow() -> None:
    full = torch.full((1, 1, int8_positions.WIDEST), 3.0)
    one = quantised(full, torch.ones(1, 1, dtype=torch.bool))
    assert kernel.cosines(one[0], one, DIGITS).item() == pytest.approx(1.0, abs=1e-15)
    other = quantised(-full, torch.ones(1, 1, dtype=torch.bool))
    assert kernel.cosines(one[0], other, DIGITS).item() == pytest.approx(-1.0, abs=1e-15)


def test_nothing_to_compare_is_no_error() -> None:
    draw = torch.Generator().manual_seed(0)
    assert kernel.cosines(positions(draw, 1, 3, 8)[0], positions(draw, 2, 5, 8)[:0], DIGITS).shape == (0, 3, 5)
    assert kernel.cosines(positions(draw, 1, 3, 8)[0][:0], positions(draw, 2, 5, 8), DIGITS).shape == (2, 0, 5)
    assert kernel.cosines(positions(draw, 1, 3, 8)[0], positions(draw, 2, 5, 8)[:, :0], DIGITS).shape == (2, 3, 0)


def test_wrong_sizes_and_types_are_refused() -> None:
    query, texts = torch.zeros(3, 12, dtype=torch.int8), torch.zeros(2, 5, 12, dtype=torch.int8)
    with pytest.raises(ValueError, match="must be int8"):
        kernel.cosines(query.float(), texts, DIGITS)
    for wrong in (query[:, :11], query[None], query[0]):
        with pytest.raises(ValueError, match="do not fit"):
            kernel.cosines(wrong, texts, DIGITS)
    with pytest.raises(ValueError, match="do not fit"):
        kernel.cosines(query[:, :3], texts[:, :, :3], DIGITS)
