"""A running mean of the weights over the steps of a run (Polyak and Juditsky, 1992), which is looked at in their place.

    mean <- d mean + (1 - d) weights,    d = min(average, n / (n + 10)) after step n = 0, 1, ...

What a single step adds by chance is mostly gone from the mean. d grows, so that the weights before the first step count
for nothing and early ones are soon forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from matchloom.models.base import PairModel


class WeightAverage:
    """The mean of all that moves: parameters that learn, and buffers such as those of batch normalisation."""

    def __init__(self, model: PairModel, average: float) -> None:
        self.model, self.average = model, average
        self.mean = {name: x.detach().clone() for name, x in self._moving()}
        self.steps = torch.zeros((), dtype=torch.int64)

    def _moving(self) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad:
                yield name, parameter
        for name, buffer in self.model.named_buffers():
            if buffer.is_floating_point():
                yield name, buffer

    @torch.no_grad()
    def add(self) -> None:
        """Take the weights after a step into the mean."""
        n = int(self.steps)
        for name, x in self._moving():
            self.mean[name].lerp_(x, 1 - min(self.average, n / (n + 10)))
        self.steps += 1

    @contextmanager
    @torch.no_grad()
    def in_place(self) -> Iterator[None]:
        """The model has the mean as its weights here, and its own again behind."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for name, x in self._moving():
            kept = x.clone()
            x.copy_(self.mean[name])
            self.mean[name].copy_(kept)

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must hold."""
        return {"steps": self.steps, **{f"mean/{name}": x for name, x in self.mean.items()}}

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from what a checkpoint holds."""
        self.steps = state["steps"].clone()
        for name, x in self.mean.items():
            x.copy_(state[f"mean/{name}"])
