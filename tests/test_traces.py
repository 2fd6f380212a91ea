"""A trace from a map: cells that contributed become signals, and everything adds up."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from matchloom.traces import empty_grid, grid_trace
from matchloom.types import Component, Signal
from tests.refusing import refused

numbers = st.one_of(st.just(0.0), st.floats(-100, 100, width=32))
grids = arrays.arrays(np.float32, st.tuples(*[st.integers(0, 4)] * 3), elements=numbers)


@given(contributions=grids, score=st.floats(-100, 100), of_component=st.floats(-10, 10), as_tensor=st.booleans())
def test_signals_stand_where_cells_contributed_and_all_adds_up(
    contributions: NDArray[np.float32], score: float, of_component: float, as_tensor: bool
) -> None:
    grid = np.arange(contributions.size, dtype=np.float32).reshape(contributions.shape)
    names = [f"channel {c}" for c in range(len(grid))]
    components = [Component("length", 3.0, of_component)]
    given = (torch.from_numpy(grid), torch.from_numpy(contributions)) if as_tensor else (grid, contributions)
    trace = grid_trace(score, *given, names, components)
    assert (trace.score, trace.channels, trace.components) == (score, names, components)
    assert trace.grid.dtype == np.float32
    assert np.array_equal(trace.grid, grid)
    assert [[s.channel, s.left, s.right] for s in trace.signals] == np.argwhere(contributions).tolist()
    for s in trace.signals:
        assert s.value == grid[s.channel, s.left, s.right]
        assert s.contribution == contributions[s.channel, s.left, s.right]
    whole = sum(s.contribution for s in trace.signals) + of_component + trace.residual
    assert whole == pytest.approx(score, abs=1e-9)


def test_a_small_map_by_hand() -> None:
    grid = np.array([[[0.5, 2.0]], [[1.0, 0.0]]])
    trace = grid_trace(3.0, grid, np.array([[[0.0, 1.5]], [[-0.5, 0.0]]]), ("a", "b"))
    assert trace.signals == [Signal(0, 1, 0, 2.0, 1.5), Signal(0, 0, 1, 1.0, -0.5)]
    assert trace.residual == 2.0
    assert not trace.paths


def test_the_map_is_a_copy_and_takes_tensors_with_a_gradient() -> None:
    grid = torch.ones(1, 2, 2, requires_grad=True)
    trace = grid_trace(4.0, grid, grid * 2, ["words"])
    assert trace.residual == -4.0
    with torch.no_grad():
        grid += 1
    assert trace.grid.tolist() == [[[1, 1], [1, 1]]]


def test_a_contribution_that_is_no_number_is_kept_for_the_explanation_to_refuse() -> None:
    trace = grid_trace(1.0, np.ones((1, 1, 2)), np.array([[[np.inf, -np.inf]]]), ["words"])
    assert len(trace.signals) == 2
    assert np.isnan(trace.residual)


@pytest.mark.parametrize(
    ("grid", "contributions", "names"),
    [((1, 2, 3), (1, 3, 2), 1), ((2, 3), (2, 3), 2), ((2, 1, 1), (2, 1, 1), 1)],
)
def test_shapes_that_do_not_fit_are_refused(grid: tuple[int, ...], contributions: tuple[int, ...], names: int) -> None:
    with pytest.raises(ValueError, match="one shape"):
        grid_trace(0.0, np.ones(grid), np.ones(contributions), ["x"] * names)


def test_a_map_too_large_for_memory_is_refused() -> None:
    assert empty_grid(0, 3).shape == (1, 0, 3)
    with refused("too_large", "10,000"):
        empty_grid(10_000, 10_000)
