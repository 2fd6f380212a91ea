"""A curve that grows, as an inline SVG: values along epochs, and baselines as lines across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matchloom.explanation.markup import safe_text
from matchloom.fitting.chart import apart, drawable, ticks_of

Points = Sequence[tuple[float, float]]

_LETTER, _LEFT, _TOP, _BOTTOM = 8.0, 52.0, 12.0, 42.0
_NAME = 18  # letters of a label


def draw_run(
    name: str, points: Points, *, epochs: float, baselines: Mapping[str, float] | None = None, best: float | None = None
) -> str:
    """The curve with its name, against epochs from 0 to `epochs`; `best` is the epoch that was kept."""
    points = [(x, y) for x, y in points if drawable(y)]
    lines = {label: value for label, value in (baselines or {}).items() if drawable(value)}
    if not points:
        return ""
    width, height = 640, 260
    right = width - 22 - _LETTER * max([len(_short(label)) for label in (name, *lines)])
    bottom = height - _BOTTOM
    ticks = ticks_of([*(y for _, y in points), *lines.values()])

    def x_of(epoch: float) -> float:
        return _LEFT + 8 + epoch / max(epochs, 1e-9) * (right - _LEFT - 8)

    def y_of(value: float) -> float:
        return bottom - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (bottom - _TOP)

    last = points[-1]
    at = apart({name: y_of(last[1]), **{label: y_of(value) for label, value in lines.items()}}, _TOP, bottom)
    places = len(f"{ticks[1] - ticks[0]:.6f}".rstrip("0").partition(".")[2])
    drawn = [
        f'<line class="rule" x1="{_LEFT}" y1="{y_of(tick):.1f}" x2="{right:.1f}" y2="{y_of(tick):.1f}"></line>'
        f'<text class="axis" x="{_LEFT - 6}" y="{y_of(tick) + 4:.1f}" text-anchor="end">{tick:.{places}f}</text>'
        for tick in ticks
    ]
    step = max(1, round(epochs / 8))
    drawn += [
        f'<text class="axis" x="{x_of(n):.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{n}</text>'
        for n in range(0, int(epochs) + 1, step)
    ]
    drawn.append(
        f'<text class="axis" x="{(_LEFT + right) / 2:.1f}" y="{height - 4}" text-anchor="middle">epochs</text>'
    )
    for n, (label, value) in enumerate(lines.items()):
        drawn.append(
            f'<g class="c{n % 5}"><line class="across" x1="{_LEFT}" y1="{y_of(value):.1f}" x2="{right:.1f}" '
            f'y2="{y_of(value):.1f}"></line>{_label(label, right, y_of(value), at[label])}</g>'
        )
    path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points)
    kept = next(((x, y) for x, y in points if x == best), None)
    mark = (
        ""
        if kept is None
        else f'<circle class="best" cx="{x_of(kept[0]):.1f}" cy="{y_of(kept[1]):.1f}" r="6"></circle>'
    )
    dots = "".join(f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="2.5"></circle>' for x, y in points)
    end = _label(name, x_of(last[0]), y_of(last[1]), at[name], right)
    drawn.append(f'<g class="chosen"><polyline points="{path}"></polyline>{dots}{mark}{end}</g>')
    told = f"{name}: {points[0][1]:.4g} first, {last[1]:.4g} last"
    return (
        f'<svg class="curve wide run" viewBox="0 0 {width} {height}" role="img" aria-label="{safe_text(told)}">\n'
        + "\n".join(drawn)
        + "\n</svg>"
    )


def _short(label: str) -> str:
    return label if len(label) <= _NAME else label[: _NAME - 1] + "…"


def _label(label: str, x: float, y: float, at: float, right: float | None = None) -> str:
    edge = x if right is None else right
    return (
        f'<path class="leader" d="M{x + 4:.1f} {y:.1f}L{edge + 12:.1f} {at:.1f}"></path>'
        f'<text x="{edge + 16:.1f}" y="{at + 4.5:.1f}">{safe_text(_short(label))}</text>'
    )
