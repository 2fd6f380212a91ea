"""The four losses. Each takes the scores of a batch and gives the sum over its examples, for the caller to average."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def hinge(scores: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0) -> Tensor:
    """sum max(0, margin - s(x, y+) + s(x, y-)) over the triples; positive and negative are places in scores (T,).

    >>> float(hinge(torch.tensor([2.0, 1.5, 0.0]), torch.tensor([0, 0]), torch.tensor([1, 2])))
    0.5
    """
    return torch.relu(margin - scores[positive] + scores[negative]).sum()


def softmax(scores: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """sum -log(exp s(x, y+) / sum of exp s(x, y) over y+ and its negatives) over the positives; places as for hinge.

    >>> round(float(softmax(torch.tensor([2.0, 2.0, 2.0]), torch.tensor([0, 0]), torch.tensor([1, 2]))), 4)
    1.0986
    """
    first, group = torch.unique_consecutive(positive, return_inverse=True)
    rest = scores[negative] - scores[positive]
    # log(1 + sum of exp(s- - s+)), shifted by the largest so that nothing overflows
    largest = torch.zeros_like(first, dtype=scores.dtype).scatter_reduce(0, group, rest.detach(), "amax")
    total = torch.exp(-largest).scatter_add(0, group, torch.exp(rest - largest[group]))
    return (torch.log(total) + largest).sum()


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """sum -log p(label), where p(match) = sigmoid(s): the softmax over two classes whose logits differ by s."""
    return functional.binary_cross_entropy_with_logits(scores, labels, reduction="sum")


def squared_error(scores: Tensor, labels: Tensor) -> Tensor:
    """sum (s - label)^2."""
    return functional.mse_loss(scores, labels, reduction="sum")
