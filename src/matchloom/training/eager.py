"""torch's optimizers without its compiler: they load it, most of a second, to tell it what it must not compile."""

from __future__ import annotations

from typing import Any


def undecorated(method: Any) -> Any:
    """A method as it was written; itself where nothing was put around it."""
    return getattr(method, "__wrapped__", method)
