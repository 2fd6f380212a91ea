"""Late interaction word by word: one pair at a time, by the sums of its docstring."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tests.models.making import VOCAB


def late_interaction(model: torch.nn.Module, left: list, right: list) -> Tensor:
    """The score of two texts given as word ids, or as words where the model looks at these; positions not rounded."""
    return _score(model, left, right, lambda x: x / x.norm())


def late_interaction_int8(model: torch.nn.Module, left: list, right: list) -> Tensor:
    """The same from positions of whole numbers up to 127."""

    def rounded(x: Tensor) -> Tensor:
        largest = max(abs(float(number)) for number in x)
        q = torch.tensor([float(round(float(number) / largest * 127)) for number in x], dtype=x.dtype)
        return q / q.norm()

    return _score(model, left, right, rounded)


def _score(model: torch.nn.Module, left: list, right: list, position: Callable[[Tensor], Tensor]) -> Tensor:
    E = model.encoder.embedding.weight
    words = left, right

    def vector(word: object) -> Tensor:
        n = word if isinstance(word, int) else VOCAB.ids([word])[0] if isinstance(word, str) else 1
        return position(E[n] if model.projection is None else model.projection.weight @ E[n])

    ours, theirs = [[vector(word) for word in side] for side in words]
    total = torch.zeros((), dtype=E.dtype)
    weight = torch.zeros((), dtype=E.dtype)
    for x in ours:
        cosines = sorted((x @ y for y in theirs), key=lambda c: float(c.detach()), reverse=True)
        found = sum((w * c for w, c in zip(model.w, cosines, strict=False)), torch.zeros((), dtype=E.dtype))
        raised = torch.exp(model.a @ x)
        total = total + raised * found
        weight = weight + raised
    return total / weight
