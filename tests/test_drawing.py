"""Property tests draw as the profile says: none has a clock or a number of examples that no profile scales."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import settings

from tests.drawing import examples

TESTS = Path(__file__).parent
PROFILES = ["ci", "fuzz"]


@pytest.mark.parametrize("profile", PROFILES)
def test_no_profile_looks_at_a_clock(profile: str) -> None:
    assert settings.get_profile(profile).deadline is None


def test_only_fuzz_draws_anew() -> None:
    assert settings.get_profile("ci").derandomize
    assert not settings.get_profile("fuzz").derandomize


def test_fuzz_draws_ten_times_as_many_whatever_a_test_asked_for() -> None:
    active = settings.get_current_profile_name()
    try:
        numbers = []
        for profile in PROFILES:
            settings.load_profile(profile)
            numbers.append((settings().max_examples, examples(30).max_examples))
    finally:
        settings.load_profile(active)
    assert numbers == [(100, 30), (1000, 300)]


def test_no_test_sets_what_the_profile_sets() -> None:
    for path in TESTS.rglob("*.py"):
        if path in (TESTS / "conftest.py", TESTS / "drawing.py", Path(__file__)):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [name.name for name in node.names] if isinstance(node, ast.ImportFrom) else []
            assert "settings" not in names, f"{path}: use tests.drawing.examples in place of hypothesis.settings"
