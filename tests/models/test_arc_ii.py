"""ARC-II against the slow reference, and its contributions."""

from __future__ import annotations

import pytest
import torch

from tests.models.comparing import assert_same_gradients, assert_same_scores, read
from tests.models.making import make_model, make_pairs
from tests.reference import arc as reference

SMALL = {"maps": 3, "units": 5, "max_words": 14}
VARIANTS = [{}, {"window": 2, "layers": 2}, {"layers": 1}, {"max_words": 5}]


@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_equals_the_paper_window_by_window(arguments: dict) -> None:
    assert_same_scores(make_model("arc_ii", **{**SMALL, **arguments}), reference.arc_ii)


def test_gradients_equal_the_reference() -> None:
    assert_same_gradients(make_model("arc_ii", **{**SMALL, "max_words": 6, "layers": 2}), reference.arc_ii)


def test_shares_are_value_times_slope_of_the_first_map() -> None:
    model = make_model("arc_ii", **SMALL)
    trace = model.trace(make_pairs(model, [(0, 1)]))[0]
    z = reference.first_map(model, read(model, 0), read(model, 1))
    leaves = [[cell.detach().requires_grad_() for cell in row] for row in z]
    score = reference.above(model, leaves)
    assert trace.score == pytest.approx(score.item())
    score.backward()
    contributions = torch.stack([torch.stack([(c.detach() * c.grad).sum() for c in row]) for row in leaves])
    found = torch.zeros_like(contributions)
    for signal in trace.signals:
        found[signal.left, signal.right] = signal.contribution
    torch.testing.assert_close(found, contributions, rtol=1e-9, atol=1e-10)
    values = torch.stack([torch.stack([c.detach().sum() for c in row]) for row in leaves])
    L, R = len(read(model, 0)), len(read(model, 1))
    torch.testing.assert_close(torch.from_numpy(trace.grid[0]), values[:L, :R])
