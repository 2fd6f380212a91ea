"""Adam (Kingma and Ba, 2015) and AdamW with torch's own result: one pass over a parameter, by a native kernel.

    m <- beta1 m + (1 - beta1) g
    v <- beta2 v + (1 - beta2) g^2
    x <- x - rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)

AdamW shrinks x by rate * decay before that. torch makes seven passes over a table of word vectors, though its gradient
is zero but for the words of a batch. Here that gradient is sparse; the other rows move on by their m, as torch's do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from matchloom.kernels.native import Library, address, library
from matchloom.training.eager import undecorated


class Adam(torch.optim.Adam):
    """For parameters with whole gradients, and for tables of rows with sparse ones."""

    add_param_group = undecorated(torch.optim.Adam.add_param_group)
    state_dict = undecorated(torch.optim.Adam.state_dict)
    load_state_dict = undecorated(torch.optim.Adam.load_state_dict)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        moved = [(x, group) for group in self.param_groups for x in group["params"] if x.grad is not None]
        loaded = library()
        if loaded is None or not all(_serves(x) for x, _ in moved):
            for x, _ in moved:
                x.grad = x.grad.to_dense() if x.grad.is_sparse else x.grad
            undecorated(torch.optim.Adam.step)(self)
            return
        for x, group in moved:
            state = self.state[x]
            if not state:
                state["step"] = torch.zeros(())
                state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(x), torch.zeros_like(x)
            state["step"] += 1
            _move(loaded, x, state, group)
        torch.autograd.graph.increment_version([x for x, _ in moved])  # what is kept of the weights is out of date


def _serves(x: nn.Parameter) -> bool:
    """Whether the kernel can take a parameter."""
    return x.device.type == "cpu" and x.dtype == torch.float32 and x.is_contiguous()


def _move(loaded: Library, x: nn.Parameter, state: dict[str, Tensor], group: dict[str, Any]) -> None:
    done, (beta1, beta2) = float(state["step"]), group["betas"]
    rate = group["lr"] / (1 - beta1**done)
    root, shrink = math.sqrt(1 - beta2**done), 1 - group["lr"] * group["weight_decay"]
    settings = np.array([1 - beta1, beta2, 1 - beta2, rate, root, group["eps"], shrink], dtype=np.float32)
    places = x.data_ptr(), state["exp_avg"].data_ptr(), state["exp_avg_sq"].data_ptr()
    gradient = x.grad
    assert gradient is not None
    if gradient.is_sparse:
        gradient = gradient.coalesce()
        rows, values = gradient.indices()[0].contiguous(), gradient.values().contiguous()
        shape = len(x), x.numel() // max(1, len(x))
        loaded.adam(*places, *shape, rows.data_ptr(), values.data_ptr(), len(rows), address(settings))
    else:  # one row, and all of it
        values, rows = gradient.contiguous(), torch.zeros(1, dtype=torch.int64)
        loaded.adam(*places, 1, x.numel(), rows.data_ptr(), values.data_ptr(), 1, address(settings))
