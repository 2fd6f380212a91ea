"""Which word made which part of a vector or score, exactly.

A network of linear layers, choices (pooling) and tanh is linear once its choices are made and each tanh is replaced by
the factor tanh(z) / z that it has at this point. Then v is a sum of one vector for each word, and of what the biases
add.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from matchloom.batches import PairBatch
from matchloom.layers.interactions import gather_rows
from matchloom.traces import grid_trace
from matchloom.types import Trace


def factor(value: Tensor, z: Tensor) -> Tensor:
    """f(z) / z of an f that is 0 at 0, such as tanh and relu; there it is 1, and multiplies nothing."""
    return torch.where(z == 0, 1.0, value / torch.where(z == 0, 1.0, z))


def linear_tanh(z: Tensor) -> Tensor:
    """tanh(z), of which a gradient sees only the factor tanh(z) / z."""
    return z * factor(torch.tanh(z), z).detach()


def linear_sigmoid(z: Tensor) -> Tensor:
    """sigmoid(z), of which a gradient sees only the slope from the last row, the reference, to each other row.

    Differences from the reference then pass a layer as through a linear one, exactly.
    """
    h, h_0, z_0 = torch.sigmoid(z), torch.sigmoid(z[-1:]), z[-1:].detach()
    return h_0.detach() + (z - z_0) * factor(h - h_0, z - z_0).detach()


def linear_contributions(f: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """The scores f(x) (B,), and what each number of x adds to its own: its value times the slope there.

    Exact where f is linear around x but for a constant, as networks of ReLU, pooling and convolutions are.
    """
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        scores = f(x)
    slopes = torch.autograd.grad(scores.sum(), x)[0]
    return scores.detach(), x.detach() * slopes


def word_contributions(v: Tensor, x: Tensor) -> Tensor:
    """The part of v (N, n) that each word vector of x (N, L, D) made; v must be linear in x but for a constant.

    (N, L, n). What is left of v when the components of its words are taken away comes from the biases.
    """
    N, n = v.shape
    each = torch.eye(n, dtype=v.dtype, device=v.device)[:, None].expand(n, N, n)
    slopes = torch.autograd.grad(v, x, each, is_grads_batched=True)[0]  # (n, N, L, D)
    return torch.einsum("nild,ild->iln", slopes, x.detach())


def additive_traces(batch: PairBatch, scores: Tensor, slopes: Tensor, left: Tensor, right: Tensor) -> list[Trace]:
    """Why pairs got their scores (B,), for models in which words only add to what a head makes of [v_l ; v_r].

    `left` and `right` are the components of the texts' words, (N, L, n) and (M, R, n), and `slopes` (B, 2n) the
    gradient of the scores, in whose pieces the head is linear. A word's contribution is its part times the slope.
    """
    s_l, s_r = slopes.chunk(2, dim=1)
    of_left = torch.einsum("bln,bn->bl", gather_rows(left, batch.left_rows), s_l)
    of_right = torch.einsum("brn,bn->br", gather_rows(right, batch.right_rows), s_r)
    return word_traces(batch, scores, of_left, of_right)


def word_traces(batch: PairBatch, scores: Tensor, left: Tensor, right: Tensor) -> list[Trace]:
    """Traces of scores (B,) to which single words add `left` (B, L) and `right` (B, R), and biases the rest.

    No two words meet in such a model: a cell of the map holds what its two words add, the contribution of either spread
    evenly over the words of the other text, so that all cells together make the contributions of all words.
    """
    traces = []
    for b, (x, y) in enumerate(zip(batch.left_rows.tolist(), batch.right_rows.tolist(), strict=True)):
        L, R = int(batch.left.lengths[x]), int(batch.right.lengths[y])
        grid = ((left[b, :L] / R)[:, None] + (right[b, :R] / L)[None])[None]  # (1, L, R)
        traces.append(grid_trace(float(scores[b]), grid, grid, ["sum of words"]))
    return traces
