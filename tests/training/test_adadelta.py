"""Rows that wait for their gradient end where a table that is moved whole at every step ends."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from matchloom.training.adadelta import EPSILON, RHO, AdaDelta


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_rows_that_wait_equal_a_table_that_is_moved_whole(rate: float) -> None:
    generator = torch.Generator().manual_seed(3)
    table, whole = (nn.Parameter(torch.ones(6, 2, dtype=torch.double)) for _ in range(2))
    dense, other = (nn.Parameter(torch.ones(3, dtype=torch.double)) for _ in range(2))
    ours = AdaDelta([table, dense], lr=rate)
    theirs = torch.optim.Adadelta([whole, other], lr=rate, rho=RHO, eps=EPSILON)
    for step in range(40):
        rows = torch.randint(0, 5, (3,), generator=generator) if step % 7 else torch.tensor([2])  # row 5 never moves
        values = torch.randn(len(rows), 2, dtype=torch.double, generator=generator)
        table.grad = torch.sparse_coo_tensor(rows[None], values, (6, 2))  # some rows twice
        whole.grad = table.grad.to_dense()
        dense.grad = torch.randn(3, dtype=torch.double, generator=generator)
        other.grad = dense.grad.clone()
        ours.step()
        theirs.step()
    torch.testing.assert_close(table, whole, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(dense, other, rtol=1e-12, atol=1e-12)
    assert (table[5] == 1).all()
    assert (table[:5] != 1).all()


def test_a_state_that_was_put_back_goes_on_the_same() -> None:
    def run(optimizer: AdaDelta, x: nn.Parameter, steps: range) -> None:
        for step in steps:
            x.grad = torch.sparse_coo_tensor([[step % 3]], [[float(step + 1)]], (4, 1))
            optimizer.step()

    one, two = (nn.Parameter(torch.zeros(4, 1)) for _ in range(2))
    first, second = (AdaDelta([x], lr=1.0) for x in (one, two))
    run(first, one, range(10))
    run(second, two, range(4))
    again = AdaDelta([two], lr=1.0)
    again.load_state_dict(second.state_dict())
    run(again, two, range(4, 10))
    assert torch.equal(one, two)
