"""AdaGrad (Duchi et al., 2011) with torch's own result, in few calls: all whole gradients at once, and rows as rows.

    G <- G + g^2
    x <- x - rate * g / (sqrt(G) + eps)

torch's takes one parameter at a time as soon as one of them has a sparse gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from matchloom.training.eager import undecorated


class AdaGrad(torch.optim.Adagrad):
    """For parameters with whole gradients, and for tables of rows with sparse ones. No decay of rates or weights."""

    add_param_group = undecorated(torch.optim.Adagrad.add_param_group)
    state_dict = undecorated(torch.optim.Adagrad.state_dict)
    load_state_dict = undecorated(torch.optim.Adagrad.load_state_dict)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            moved = [x for x in group["params"] if x.grad is not None]
            for x in moved:
                self.state[x]["step"] += 1
                if x.grad.is_sparse:
                    _move_rows(x, x.grad.coalesce(), self.state[x]["sum"], group["lr"], group["eps"])
            whole = [x for x in moved if not x.grad.is_sparse]
            if whole:
                _move(whole, [self.state[x]["sum"] for x in whole], group["lr"], group["eps"])


def _move_rows(x: Tensor, gradient: Tensor, sums: Tensor, lr: float, epsilon: float) -> None:
    rows, g = gradient.indices()[0], gradient.values()
    own = sums.index_select(0, rows).add_(g * g)
    sums.index_copy_(0, rows, own)
    moved = x.index_select(0, rows).add_(g / own.sqrt_().add_(epsilon), alpha=-lr)
    x.index_copy_(0, rows, moved)  # every row is there once; index_add_ takes several times as long


def _move(parameters: list[Tensor], sums: list[Tensor], lr: float, epsilon: float) -> None:
    gradients: list[Tensor] = [x.grad for x in parameters]  # type: ignore[misc]
    torch._foreach_addcmul_(sums, gradients, gradients, value=1)
    roots = torch._foreach_sqrt(sums)
    torch._foreach_add_(roots, epsilon)
    torch._foreach_addcdiv_(parameters, gradients, roots, value=-lr)
