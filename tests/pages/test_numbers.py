from __future__ import annotations

import pytest

from matchloom.pages.numbers import decimals, fixed, significant


@pytest.mark.parametrize(
    ("numbers", "places"),
    [
        ([14.32], 2),
        ([0.8123, -0.1], 4),
        ([-1234.5], 0),
        ([99999.0], 0),
        ([0.00123], 6),
        ([1e-30], 8),
        ([], 4),
        ([0.0], 4),
    ],
)
def test_decimals(numbers: list[float], places: int) -> None:
    assert decimals(numbers) == places


def test_decimals_pass_over_what_is_not_finite() -> None:
    assert decimals([float("nan"), float("inf"), 2.0]) == 3


def test_fixed() -> None:
    assert fixed(1.23456, 3) == "1.235"
    assert fixed(0.5, 2, sign=True) == "+0.50"
    assert fixed(-0.5, 2, sign=True) == "-0.50"
    assert fixed(-0.0001, 2) == "0.00"


def test_significant() -> None:
    assert significant(123456.789, 4) == 123500.0
    assert significant(0.000123456, 3) == 0.000123
    assert str(significant(-0.0, 3)) == "0.0"
    assert significant(float("inf"), 3) is None
    assert significant(float("nan"), 3) is None
