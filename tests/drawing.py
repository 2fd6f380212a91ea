"""How many examples a property test draws."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100  # of the profile `ci`, and of a test that says nothing


def examples(count: int) -> settings:
    """So many examples under the profile `ci`, and under another as many times more as that one draws in general."""
    return settings(max_examples=count * settings.default.max_examples // USUAL)
