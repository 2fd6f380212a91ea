"""Lines as an inline SVG: its colours come from the page's style, its numbers and names from a report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from matchloom.pages.markup import safe_text
from matchloom.pages.numbers import drawable

Points = Sequence[tuple[float, float]]
Name = TypeVar("Name")

_COLOURS = 5  # classes c0, c1, ... of style.css
_LETTER, _LINE = 8.3, 17.0  # how wide a letter and how high a line of a label is, in pixels
_LEFT, _TOP, _BOTTOM = 50.0, 12.0, 46.0
_NAME = 20  # letters of a label
_SIZES = {"wide": (760, 340), "narrow": (370, 300)}  # style.css shows one of them


def curve(
    lines: Mapping[str, Points],
    *,
    chosen: str,
    x_name: str,
    end: float | None = None,
    levels: Mapping[str, float] | None = None,
    ring: float | None = None,
    caption: str = "",
) -> str:
    """Lines named at their ends, that of the chosen one bold and on top; drawn for a wide page and for a phone.

    Names that would stand upon one another are moved apart, and a thin line leads to them.

    Args:
        lines: The points of each.
        chosen: The name of one of them.
        x_name: What the axis below is called.
        end: That axis goes from 0 to here; without, it is logarithmic, from the first point to the last.
        levels: Values that are lines across.
        ring: The point of the chosen line to mark, by its x.
        caption: What it shows, for who hears the page; without, a table beside it says all.
    """
    seen = {name: [one for one in points if drawable(one[0]) and drawable(one[1])] for name, points in lines.items()}
    seen = {name: points for name, points in seen.items() if points}
    if not seen or not drawable(end or 0.0):
        return ""
    across = {name: value for name, value in (levels or {}).items() if drawable(value)}
    heard = f'role="img" aria-label="{safe_text(caption)}"' if caption else 'aria-hidden="true"'
    return "\n".join(
        _Drawing(seen, across, size, end).svg(css, chosen, x_name, ring, heard) for css, size in _SIZES.items()
    )


class _Drawing:
    """The axes of a picture of one size."""

    def __init__(
        self, lines: Mapping[str, Points], across: Mapping[str, float], size: tuple[int, int], end: float | None
    ) -> None:
        self.lines, self.across = lines, across
        names = [*lines, *across]
        self.width, self.height = size[0], max(size[1], round(_LINE * len(names) + _TOP + _BOTTOM))
        self.right = self.width - 26 - _LETTER * max(len(_short(name)) for name in names)
        self.bottom = self.height - _BOTTOM
        self.ticks = ticks_of([*(y for points in lines.values() for _, y in points), *across.values()])
        self.log = end is None
        if end is None:
            self.x_ticks = sorted({x for points in lines.values() for x, _ in points})
            self.low, self.high = (math.log(max(1.0, x)) for x in (self.x_ticks[0], self.x_ticks[-1]))
        else:
            step = max(1, round(end / 8))
            self.x_ticks = [float(x) for x in range(0, int(end) + 1, step)]
            self.low, self.high = 0.0, end
        ends = {("line", name): self.y(points[-1][1]) for name, points in lines.items()}
        ends |= {("level", name): self.y(value) for name, value in across.items()}
        self.labels = apart(ends, _TOP, self.bottom)

    def x(self, value: float) -> float:
        value = math.log(max(1.0, value)) if self.log else value
        part = (value - self.low) / (self.high - self.low) if self.high > self.low else 1.0
        return _LEFT + 14 + part * (self.right - _LEFT - 14)

    def y(self, value: float) -> float:
        return self.bottom - (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0]) * (self.bottom - _TOP)

    def svg(self, css: str, chosen: str, x_name: str, ring: float | None, heard: str) -> str:
        others = [("line", name) for name in self.lines if name != chosen] + [("level", name) for name in self.across]
        colour = {key: f"c{n % _COLOURS}" for n, key in enumerate(others)}
        drawn = [
            *self._axes(x_name),
            *(self._level(name, colour["level", name]) for name in self.across),
            *(self._line(name, colour["line", name], None) for name in self.lines if name != chosen),
        ]
        if chosen in self.lines:  # what is drawn later lies on top
            drawn.append(self._line(chosen, "chosen", ring))
        inside = "\n".join(drawn)
        return f'<svg class="curve {css}" viewBox="0 0 {self.width} {self.height}" {heard}>\n{inside}\n</svg>'

    def _axes(self, x_name: str) -> Iterator[str]:
        places = max(0, min(6, -math.floor(math.log10(self.ticks[1] - self.ticks[0]) + 1e-6)))
        for tick in self.ticks:
            yield f'<line class="rule" {self._across(self.y(tick))}></line>' + _text(
                _LEFT - 6, self.y(tick) + 4, f"{tick:.{places}f}", "end"
            )
        for x in self._with_room():
            yield _text(self.x(x), self.bottom + 18, f"{x:,.0f}", "middle")
        yield _text((_LEFT + self.right) / 2, self.height - 6, safe_text(x_name), "middle")

    def _with_room(self) -> Iterator[float]:
        """The values whose labels do not touch; the last is always named."""
        free = math.inf
        for value in reversed(self.x_ticks):
            half = _LETTER * len(f"{value:,.0f}") / 2
            if self.x(value) + half + 6 < free:
                free = self.x(value) - half
                yield value

    def _across(self, y: float) -> str:
        return f'x1="{_LEFT}" y1="{y:.1f}" x2="{self.right:.1f}" y2="{y:.1f}"'

    def _level(self, name: str, css: str) -> str:
        y = self.y(self.across[name])
        line = f'<line class="across" {self._across(y)}></line>'
        return f'<g class="{css}">{line}{self._label(name, self.right, y, self.labels["level", name])}</g>'

    def _line(self, name: str, css: str, ring: float | None) -> str:
        points = [(self.x(x), self.y(y)) for x, y in self.lines[name]]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"></circle>' for x, y in points)
        for (x, _), (a, b) in zip(self.lines[name], points, strict=True):
            if x == ring:
                dots += f'<circle class="ring" cx="{a:.1f}" cy="{b:.1f}" r="8"></circle>'
        label = self._label(name, *points[-1], self.labels["line", name])
        return f'<g class="{css}"><polyline points="{path}"></polyline>{dots}{label}</g>'

    def _label(self, name: str, x: float, y: float, at: float) -> str:
        return (
            f'<path class="leader" d="M{x + 5:.1f} {y:.1f}L{self.right + 14:.1f} {at:.1f}"></path>'
            f'<text x="{self.right + 18:.1f}" y="{at + 4.5:.1f}">{safe_text(_short(name))}</text>'
        )


def _short(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def _text(x: float, y: float, said: str, anchor: str) -> str:
    return f'<text class="axis" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{said}</text>'


def ticks_of(values: Sequence[float]) -> list[float]:
    """Round numbers about values, two or more; they stay within 0 and 1 where the values do."""
    low, high = min(values), max(values)
    bounded = low >= 0 and high <= 1
    if high - low < 1e-6 * max(1.0, abs(high)):
        slack = 0.05 * max(1.0, abs(high))
        low, high = low - slack, high + slack
    if bounded:
        low, high = max(0.0, low), min(1.0, high)
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6)
    return [n * step for n in range(first, max(last, first + 1) + 1)]


def apart(wanted: Mapping[Name, float], top: float, bottom: float) -> dict[Name, float]:
    """Heights for labels as near to those wanted as lines of text allow, in the same order and between the ends."""
    placed: dict[Name, float] = {}
    below = top - _LINE
    for name in sorted(wanted, key=lambda name: wanted[name]):
        placed[name] = below = max(wanted[name], below + _LINE)
    above = bottom + _LINE
    for name in reversed(placed):
        placed[name] = above = min(placed[name], above - _LINE)
    return placed
