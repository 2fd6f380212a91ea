"""Optimizers that load no compiler make the very steps of torch's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from matchloom.training.eager import eager


@pytest.mark.parametrize("kind", [torch.optim.Adagrad, torch.optim.Adam, torch.optim.AdamW])
def test_the_steps_are_torchs(kind: type[Any]) -> None:
    torch.manual_seed(0)
    first, gradients = torch.randn(4, 3), torch.randn(5, 4, 3)
    moved = []
    for made in (kind, eager(kind)):
        x = nn.Parameter(first.clone())
        optimizer = made([{"params": [x], "lr": 0.1}])
        for gradient in gradients:
            x.grad = gradient.clone()
            optimizer.step()
        moved.append((x.detach(), optimizer.state_dict()["param_groups"]))
    assert torch.equal(moved[0][0], moved[1][0])
    assert not torch.equal(moved[0][0], first)
    assert moved[0][1] == moved[1][1]


def test_a_step_leaves_no_graph() -> None:
    x = nn.Parameter(torch.ones(3))
    x.grad = torch.ones(3)
    eager(torch.optim.Adam)([x]).step()
    assert x.is_leaf
    assert x.grad_fn is None
