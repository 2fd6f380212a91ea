"""Words and numbers as HTML; text from outside is made harmless here and nowhere else."""

from __future__ import annotations

import math
from html import escape

from matchloom.basics.screen import printable
from matchloom.pages.numbers import drawable, fixed


def safe_text(words: str) -> str:
    """Words from outside as HTML that shows them and does nothing else."""
    return escape(printable(words))


def truncate(text: str, characters: int) -> str:
    """The beginning of a text from outside, on one line, as HTML; that it was cut is seen."""
    line = " ".join(text[: 20 * characters].split())
    short = len(line) <= characters and len(text) <= 20 * characters
    return safe_text(line) if short else f"{safe_text(line[:characters].rstrip())} …"


def quoted(text: str, characters: int) -> str:
    """A user's text, cut, which may run from right to left."""
    return (
        f'<bdi dir="auto">{truncate(text, characters)}</bdi>' if text.strip() else '<span class="note">(no text)</span>'
    )


def figure(number: float, places: int, *, sign: bool = False) -> str:
    """A number with a true minus."""
    return fixed(number, places, sign=sign).replace("-", "−")


def signed(number: float, places: int) -> str:
    """A number with its sign, in the colour of it."""
    return f'<b class="figure {"neg" if round(number, places) < 0 else "pos"}">{figure(number, places, sign=True)}</b>'


def number(value: float, places: int = 3) -> str:
    """A figure that may be undefined, infinite or very large."""
    if math.isnan(value):
        return "–"
    if not drawable(value) or abs(value) >= 1e5:
        return f"{value:.3g}".replace("-", "−")
    return figure(value, places)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if not (math.isfinite(seconds) and seconds >= 0):
        return "–"
    if seconds < 100:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} h"
