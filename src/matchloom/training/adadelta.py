"""AdaDelta (Zeiler, 2012) that moves only the rows a batch holds, with the very result of moving all.

    E[g^2] <- rho E[g^2] + (1 - rho) g^2
    d      =  sqrt(E[d^2] + eps) / sqrt(E[g^2] + eps) * g
    E[d^2] <- rho E[d^2] + (1 - rho) d^2
    x      <- x - rate * d

A row without a gradient stays where it is, and both its means shrink by rho. So a row of a large table of word vectors
can be left alone until it is needed, and its means are then shrunk by rho to the number of steps it has missed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from matchloom.training.eager import undecorated

RHO, EPSILON = 0.95, 5e-7  # as M2S-Net's authors ran it, the one paper here that uses it


class AdaDelta(torch.optim.Optimizer):
    """For parameters with whole gradients, and for tables of rows with sparse ones."""

    add_param_group = undecorated(torch.optim.Optimizer.add_param_group)
    state_dict = undecorated(torch.optim.Optimizer.state_dict)
    load_state_dict = undecorated(torch.optim.Optimizer.load_state_dict)

    def __init__(self, parameters: Iterable[nn.Parameter], *, lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            for x in group["params"]:
                if x.grad is not None:
                    self._move(x, x.grad, group["lr"])

    def _move(self, x: nn.Parameter, gradient: Tensor, lr: float) -> None:
        state = self.state[x]
        if not state:
            state["step"] = torch.zeros(())
            state["squares"], state["moves"] = torch.zeros_like(x), torch.zeros_like(x)
            if gradient.is_sparse:
                state["last"] = torch.zeros(len(x), dtype=x.dtype, device=x.device)  # the step of a row's last gradient
        state["step"] += 1
        squares, moves = state["squares"], state["moves"]
        if not gradient.is_sparse:
            x.sub_(lr * _move(gradient, squares, moves))
            return
        gradient = gradient.coalesce()
        rows, values = gradient.indices()[0], gradient.values()
        shrunk = RHO ** (state["step"] - 1 - state["last"][rows])[:, None]
        row_squares, row_moves = squares[rows] * shrunk, moves[rows] * shrunk
        x.index_add_(0, rows, _move(values, row_squares, row_moves), alpha=-lr)
        squares[rows], moves[rows], state["last"][rows] = row_squares, row_moves, state["step"].to(x.dtype)


def _move(g: Tensor, squares: Tensor, moves: Tensor) -> Tensor:
    """d, with both means brought up to date."""
    squares.mul_(RHO).addcmul_(g, g, value=1 - RHO)
    d = g * (moves + EPSILON).sqrt_() / (squares + EPSILON).sqrt_()
    moves.mul_(RHO).addcmul_(d, d, value=1 - RHO)
    return d
