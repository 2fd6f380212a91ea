"""Which cases of a test over every model run after each change; the others are slow, and CI runs them too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from matchloom.models import MODELS

# One of each kind that training, saving and exporting treat in a way of its own.
REPRESENTATIVES = {
    "mv_lstm": "plain",
    "m2s_net": "batch statistics, dropout, features of the pair",
    "rae": "what it learns before the first epoch",
    "late_interaction": "made for a pretrained encoder",
}
Arguments = Mapping[str, Any]


def each_model(names: Iterable[str] = MODELS) -> list[Any]:
    """These models as cases of a test: its representatives, and the others marked as slow."""
    return [pytest.param(name, id=name, marks=_marks(name)) for name in names]


def each_variant(variants: Iterable[tuple[str, Arguments]]) -> list[Any]:
    """The same for models with arguments."""
    return [case for name, given in variants for case in cases([(name, given)], *_marks(name))]


def cases(variants: Iterable[tuple[str, Arguments]], *marks: pytest.MarkDecorator) -> list[Any]:
    """Models with arguments as cases of a test, each with an id that can be read, and all with these marks."""
    return [pytest.param(name, given, id=_id(name, given), marks=marks) for name, given in variants]


def _marks(name: str) -> tuple[pytest.MarkDecorator, ...]:
    return () if name in REPRESENTATIVES else (pytest.mark.slow,)


def _id(name: str, arguments: Arguments) -> str:
    return f"{name}-{'-'.join(f'{key}={value}' for key, value in arguments.items()) or 'default'}"
