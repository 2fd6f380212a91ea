"""The losses against their formulas, written out."""

from __future__ import annotations

import math

import pytest
import torch

from matchloom.training.losses import cross_entropy, hinge, squared_error


def test_hinge_sums_over_triples() -> None:
    scores = torch.tensor([2.0, 1.5, -1.0, 0.3])
    value = hinge(scores, torch.tensor([0, 0, 2]), torch.tensor([1, 2, 3]), margin=1.0)
    assert float(value) == pytest.approx(max(0, 1 - 2 + 1.5) + max(0, 1 - 2 - 1) + max(0, 1 + 1 + 0.3))
    wider = hinge(scores, torch.tensor([0]), torch.tensor([1]), margin=3.0)
    assert float(wider) == pytest.approx(2.5)


def test_cross_entropy_is_the_log_loss_of_a_sigmoid() -> None:
    scores, labels = [0.4, -2.0, 30.0], [1.0, 0.0, 1.0]
    chances = [1 / (1 + math.exp(-score)) for score in scores]
    expected = -sum(math.log(p if y else 1 - p) for p, y in zip(chances, labels, strict=True))
    assert float(cross_entropy(torch.tensor(scores), torch.tensor(labels))) == pytest.approx(expected, rel=1e-5)


def test_squared_error() -> None:
    assert float(squared_error(torch.tensor([1.0, 3.0]), torch.tensor([0.5, 1.0]))) == pytest.approx(0.25 + 4)
