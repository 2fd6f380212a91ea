"""The folder as a whole: every name it exports is there, and the examples of its docstrings hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from matchloom.data import corpora, ids


def test_exported_names() -> None:
    assert corpora.__all__ == sorted(corpora.__all__)
    assert all(callable(getattr(corpora, name)) for name in corpora.__all__)


@pytest.mark.parametrize(
    "name", [ids.__name__, *(f"matchloom.data.corpora.{m.name}" for m in pkgutil.iter_modules(corpora.__path__))]
)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
