"""A learning curve as an inline SVG: its colours come from the page's style, its numbers and names from a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from matchloom.explanation.markup import safe_text

Curve = Sequence[tuple[int, Mapping[str, float]]]

_COLOURS = 5  # classes c0, c1, ... of page.css
_LETTER, _LINE = 7.6, 17.0  # how wide a letter and how high a line of a label is, in pixels
_LEFT, _TOP, _BOTTOM = 46.0, 12.0, 46.0
_NAME = 20  # letters of a label


def drawable(value: float) -> bool:
    """Whether a value can be shown beside others: neither infinite nor beyond all measures."""
    return math.isfinite(value) and abs(value) < 1e9


def systems_of(curve: Curve) -> list[str]:
    """The systems that a curve has a value of, in their order."""
    return list(dict.fromkeys(name for _, values in curve for name, value in values.items() if drawable(value)))


def draw_curve(curve: Curve, chosen: str, *, width: int, height: int, x_name: str, css: str) -> str:
    """A line for each system, named at its end, that of the chosen one bold and on top.

    The axis of training questions is logarithmic: they are usually doubled from point to point. Names that would stand
    upon one another are moved apart, and a thin line leads to them.
    """
    names = systems_of(curve)
    if not names:
        return ""
    height = max(height, round(_LINE * len(names) + _TOP + _BOTTOM))
    labels = {name: name if len(name) <= _NAME else name[: _NAME - 1] + "…" for name in names}
    right = width - 26 - _LETTER * max(map(len, labels.values()))
    bottom = height - _BOTTOM
    ticks = ticks_of([v for _, values in curve for v in values.values() if drawable(v)])
    counts = sorted({count for count, _ in curve})
    low, high = (math.log(max(1, count)) for count in (counts[0], counts[-1]))

    def x_of(count: int) -> float:
        part = (math.log(max(1, count)) - low) / (high - low) if high > low else 1.0
        return _LEFT + 14 + part * (right - _LEFT - 14)

    def y_of(value: float) -> float:
        return bottom - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (bottom - _TOP)

    lines = {
        name: [(x_of(count), y_of(values[name])) for count, values in curve if drawable(values.get(name, math.nan))]
        for name in names
    }
    at = apart({name: points[-1][1] for name, points in lines.items()}, _TOP, bottom)
    others = [name for name in names if name != chosen]
    colour = {name: f"c{n % _COLOURS}" for n, name in enumerate(others)} | {chosen: "chosen"}
    drawn = [
        *(_y_tick(value, y_of(value), right, _places(ticks)) for value in ticks),
        *(_x_tick(count, x_of(count), bottom) for count in _with_room(counts, x_of)),
        f'<text class="axis" x="{(_LEFT + right) / 2:.1f}" y="{height - 6}" text-anchor="middle">'
        f"{safe_text(x_name)}</text>",
        # The chosen one last: what is drawn later lies on top.
        *(
            _system(labels[name], colour[name], lines[name], at[name], right)
            for name in sorted(names, key=lambda name: name == chosen)
        ),
    ]
    return (
        f'<svg class="curve {css}" viewBox="0 0 {width} {height}" aria-hidden="true">\n' + "\n".join(drawn) + "\n</svg>"
    )


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


def apart(wanted: Mapping[str, float], top: float, bottom: float) -> dict[str, float]:
    """Heights for labels as near to those wanted as lines of text allow, in the same order and between the ends."""
    placed: dict[str, float] = {}
    below = top - _LINE
    for name in sorted(wanted, key=lambda name: wanted[name]):
        placed[name] = below = max(wanted[name], below + _LINE)
    above = bottom + _LINE
    for name in reversed(placed):
        placed[name] = above = min(placed[name], above - _LINE)
    return placed


def _with_room(counts: Sequence[int], x_of: Callable[[int], float]) -> Iterator[int]:
    """The counts whose labels do not touch; the last is always named."""
    free = math.inf
    for count in reversed(counts):
        half = _LETTER * len(f"{count:,}") / 2
        if x_of(count) + half + 6 < free:
            free = x_of(count) - half
            yield count


def _places(ticks: Sequence[float]) -> int:
    return max(0, min(6, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-6)))


def _y_tick(value: float, y: float, right: float, places: int) -> str:
    return (
        f'<line class="rule" x1="{_LEFT}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"></line>'
        f'<text class="axis" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.{places}f}</text>'
    )


def _x_tick(count: int, x: float, bottom: float) -> str:
    return f'<text class="axis" x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{count:,}</text>'


def _system(label: str, css: str, points: Sequence[tuple[float, float]], at: float, right: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3"></circle>' for a, b in points)
    return (
        f'<g class="{css}"><polyline points="{path}"></polyline>{dots}'
        f'<path class="leader" d="M{x + 5:.1f} {y:.1f}L{right + 14:.1f} {at:.1f}"></path>'
        f'<text x="{right + 18:.1f}" y="{at + 4.5:.1f}">{safe_text(label)}</text></g>'
    )
