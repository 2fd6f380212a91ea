"""AdaGrad in few calls moves as torch's own does."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from matchloom.training.adagrad import AdaGrad


def moved(kind: type[torch.optim.Optimizer], epsilon: float) -> list[Tensor]:
    """A table with sparse gradients, two whole parameters and one without a gradient after three steps."""
    torch.manual_seed(0)
    table, weight, bias, idle = (nn.Parameter(torch.randn(size)) for size in ((9, 4), (5, 3), (5,), (2,)))
    optimizer = kind([{"params": [table, weight]}, {"params": [bias, idle], "lr": 0.5}], lr=0.1, eps=epsilon)  # type: ignore[call-arg]
    for rows in ([1, 3, 8], [0, 3], [3]):
        at, values = torch.tensor([rows]), torch.randn(len(rows), 4)
        table.grad = torch.sparse_coo_tensor(at, values, table.shape, is_coalesced=True, check_invariants=True)
        weight.grad, bias.grad = torch.randn(5, 3), torch.randn(5)
        with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]
            optimizer.step()
    return [x.detach() for x in (table, weight, bias, idle)]


def test_moves_as_torchs_own() -> None:
    for epsilon in (1e-10, 0.1):
        for ours, other in zip(moved(AdaGrad, epsilon), moved(torch.optim.Adagrad, epsilon), strict=True):
            torch.testing.assert_close(ours, other, rtol=1e-6, atol=1e-7)
