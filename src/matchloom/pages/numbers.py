"""How many digits a person wants to see."""

from __future__ import annotations

import math
from collections.abc import Iterable


def decimals(numbers: Iterable[float]) -> int:
    """Places behind the point that show four digits of the largest number: 14.32, 0.8123."""
    largest = max((abs(n) for n in numbers if math.isfinite(n)), default=0.0)
    return 4 if largest == 0 else max(0, min(8, 3 - math.floor(math.log10(largest))))


def drawable(value: float) -> bool:
    """Whether a value can be drawn beside others: neither infinite nor beyond all measures."""
    return math.isfinite(value) and abs(value) < 1e9


def fixed(number: float, places: int, *, sign: bool = False) -> str:
    """A number with this many decimal places, never a negative zero; `sign` also writes the plus."""
    number = round(number, places) + 0.0
    return f"{number:+.{places}f}" if sign else f"{number:.{places}f}"


def significant(number: float, digits: int) -> float | None:
    """A number rounded to this many significant digits; None (null in JSON) for infinity and NaN."""
    return float(f"{number:.{digits}g}") + 0.0 if math.isfinite(number) else None
