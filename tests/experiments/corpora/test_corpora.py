"""The folder as a whole: every name it exports is there."""

from __future__ import annotations

from experiments import corpora


def test_exported_names() -> None:
    assert corpora.__all__ == sorted(corpora.__all__)
    assert all(callable(getattr(corpora, name)) for name in corpora.__all__)
