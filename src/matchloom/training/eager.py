"""torch's optimizers without its compiler: they load it, most of a second, to tell it what it must not compile."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch


def undecorated(method: Any) -> Any:
    """A method as it was written; itself where nothing was put around it."""
    return getattr(method, "__wrapped__", method)


@cache
def eager(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """The same optimizer with the same steps, which are never compiled here."""

    class Eager(kind):  # type: ignore[misc, valid-type]
        add_param_group = undecorated(kind.add_param_group)
        state_dict = undecorated(kind.state_dict)
        load_state_dict = undecorated(kind.load_state_dict)

        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            """Move every parameter that has a gradient."""
            return undecorated(kind.step)(self, closure)

    Eager.__name__ = Eager.__qualname__ = kind.__name__
    return Eager
