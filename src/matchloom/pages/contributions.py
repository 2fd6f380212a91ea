"""What made a score: a word marked by its contribution, and bars along one axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from matchloom.pages.markup import figure, safe_text
from matchloom.pages.numbers import drawable


def highlight(word: str, at: int, contribution: float | None, *, largest: float, places: int) -> str:
    """A word of a text, at a position of it; a button where it took part in the score, so that a keyboard reaches it.

    Its shade is its contribution beside the `largest` there is; that which speaks against is dashed.
    """
    if contribution is None:
        return f'<span class="w" data-at="{at}">{safe_text(word)}</span>'
    kind = "up" if contribution > 0 else "down" if contribution < 0 else "flat"
    strength = abs(contribution) / largest if largest else 0.0
    return (
        f'<button type="button" class="w {kind}" data-at="{at}" style="--s:{strength:.3f}" '
        f'title="contribution {figure(contribution, places, sign=True)}">{safe_text(word)}</button>'
    )


class Axis(NamedTuple):
    """What bars are drawn along, from `low` to `high`; 0 is between them, or one of them."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Axis:
        """The shortest that holds 0 and these values, as far as they can be drawn."""
        found = [0.0, *(value for value in values if drawable(value))]
        return cls(min(found), max(found))

    def at(self, value: float) -> float:
        """Where a value lies, in percent."""
        part = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return 100 * min(1.0, max(0.0, part))

    def bar(self, start: float, end: float, kind: str) -> str:
        """A bar from one value to another, with a line at 0; `kind` is up, down or whole."""
        return (
            f'<div class="bar" aria-hidden="true" style="--zero:{self.at(0):.2f}%">'
            f'<i class="{kind}" style="{self._between(start, end)}"></i></div>'
        )

    def track(self, value: float, interval: tuple[float, float] | None = None) -> str:
        """A bar from 0 along the whole axis, with a line for the interval of its value."""
        bar = f'<i style="{self._between(0.0, value)}"></i>' if drawable(value) else ""
        line = "" if interval is None else f'<u style="{self._between(*interval)}"></u>'
        return f'<span class="track" aria-hidden="true">{bar}{line}</span>'

    def _between(self, start: float, end: float) -> str:
        a, b = sorted((self.at(start), self.at(end)))
        return f"--from:{a:.2f}%;--size:{b - a:.2f}%"
