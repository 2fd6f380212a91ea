"""From signals to a score, and how parameters start."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from matchloom.kernels import products


def linear(x: Tensor, layer: nn.Linear) -> Tensor:
    """The layer's W x + b; in the copy of a model that scores, x of float32 by the kernel, row by row alike."""
    if x.dtype == layer.weight.dtype or not products.serves(x):
        return layer(x)  # type: ignore[no-any-return]
    bias: Tensor | None = layer.bias
    return products.product(x, layer.weight.T.float(), None if bias is None else bias.float())


class MLP(nn.Module):
    """r = relu(W_r q + b_r), s = W_s r + b_s."""

    def __init__(self, size: int, units: int) -> None:
        super().__init__()
        self.W_r = nn.Linear(size, units)
        self.W_s = nn.Linear(units, 1)

    def forward(self, q: Tensor) -> Tensor:
        """(B, size) -> (B,)"""
        return self.W_s(torch.relu(self.W_r(q)))[:, 0]  # type: ignore[no-any-return]


def head_slopes(head: nn.Module, q: Tensor) -> tuple[Tensor, Tensor]:
    """The scores (B,) of signals q (B, size), and their gradient (B, size): the pieces in which the head is linear."""
    with torch.enable_grad():
        q = q.detach().requires_grad_()
        scores = head(q)
        return scores.detach(), torch.autograd.grad(scores.sum(), q)[0]


def xavier_uniform_(weights: Tensor, inputs: int, outputs: int) -> None:
    """Draw weights between so many inputs and outputs by the rule of Glorot and Bengio (2010)."""
    bound = (6 / (inputs + outputs)) ** 0.5
    nn.init.uniform_(weights, -bound, bound)


def init_linear_(*layers: nn.Linear) -> None:
    """Weights by Glorot's rule, no bias yet."""
    for layer in layers:
        xavier_uniform_(layer.weight, layer.in_features, layer.out_features)
        nn.init.zeros_(layer.bias)


def init_uniform_(model: nn.Module, scale: float = 0.1) -> None:
    """Draw every parameter of a model from a uniform distribution in (-scale, scale), but none of its encoder's."""
    for name, parameter in model.named_parameters():
        if not name.startswith("encoder."):
            nn.init.uniform_(parameter, -scale, scale)
