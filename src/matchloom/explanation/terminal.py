"""An explanation for the terminal: shaded words, the strongest signals, a heat map. It also reads without colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from matchloom.basics.screen import printable
from matchloom.explanation.cells import (
    Scale,
    channel_contributions,
    choose_channel,
    decimal_places,
    largest_first,
    paths,
    word_contributions,
    word_weights,
    worth_showing,
)
from matchloom.explanation.explained import Explanation, Side
from matchloom.explanation.source import pieces
from matchloom.pages.numbers import decimals, fixed
from matchloom.types import Component

_WIDTH = 100
_TEXT_WORDS = 150
_MAP_ROWS = 24
_LABEL = 14  # columns for a query word beside the map
_HEAD = 9  # lines for a text word above the map
# Colours of middle lightness, and black on the grounds: legible on dark and light terminals alike.
_INK = {1: "#2f86d6", -1: "#cc6a14"}
_GROUNDS = {
    1: (f"underline {_INK[1]}", "#000000 on #8fb4dc", "bold #000000 on #4da3ff"),
    -1: (f"underline {_INK[-1]}", "#000000 on #d9ab80", "bold #000000 on #ff9238"),
}
_SHADES = {1: " ░▒▓█", -1: " .-=#"}


@dataclass(frozen=True)
class TerminalView:
    """What rich prints of an explanation. It fits the console, 100 columns at most.

    The map shows the `channel` that moved the score most unless another is named; the table shows the `top` signals.
    """

    explanation: Explanation
    channel: str | None = None
    top: int = 8

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, _WIDTH)
        colour = console.color_system is not None and not console.no_color
        yield _sum_line(self.explanation)
        yield Text()
        yield from _texts(self.explanation, width, colour)
        yield Text()
        yield _signals(self.explanation, width, self.top)
        yield Text()
        yield from _map(self.explanation, width, choose_channel(self.explanation, self.channel))


def _sum_line(explanation: Explanation) -> Text:
    trace, places = explanation.trace, decimal_places(explanation)
    signals, components = (sum(one.contribution for one in ones) for ones in (trace.signals, trace.components))
    return Text.assemble(
        (f"{printable(explanation.scorer)}  score {fixed(trace.score, places)}", "bold"),
        f"  =  {fixed(signals, places, sign=True)} signals  ",
        f"{fixed(components, places, sign=True)} components  " if trace.components else "",
        f"{fixed(trace.residual, places, sign=True)} residual",
    )


def _texts(explanation: Explanation, width: int, colour: bool) -> RenderResult:
    contributions, weights = word_contributions(explanation), word_weights(explanation)
    largest = max(map(abs, [*contributions[0], *contributions[1]]), default=0.0)
    table = Table.grid(padding=(0, 2))
    shown = explanation.sides()
    named = max(len(side.name) for side in shown)
    table.add_column(width=named)
    table.add_column(width=width - named - 2)
    for side in shown:
        table.add_row(Text(side.name, "bold"), _words(explanation, side, contributions, weights, largest, colour))
    yield table
    if largest and not colour:
        yield Text(" " * (named + 2) + "strongest words: +++, against the match: ---", "italic")


def _words(
    explanation: Explanation,
    side: Side,
    all_contributions: tuple[list[float], list[float]],
    all_weights: tuple[dict[int, float], dict[int, float]],
    largest: float,
    colour: bool,
) -> Text:
    here = slice(side.start, side.end)
    words = (explanation.query, explanation.text)[side.which][here]
    if not words:
        return Text("(no words)", "italic")
    contributions = all_contributions[side.which][here]
    weights = {i - side.start: w for i, w in all_weights[side.which].items() if side.start <= i < side.end}
    shown = worth_showing(len(words), weights, _TEXT_WORDS)
    line = Text()
    for text, i in pieces(words, side.source, shown):
        level = 0 if i is None else _level(contributions[i], largest)
        sign = 1 if level > 0 else -1
        line.append(printable(text), _GROUNDS[sign][abs(level) - 1] if level and colour else "")
        if not colour:
            line.append(("+" if level > 0 else "-") * abs(level))
    if len(shown) < len(words):
        line.append(f" ({len(words) - len(shown)} of {len(words)} words not shown)", "italic")
    return line


def _level(contribution: float, largest: float) -> int:
    if not contribution:
        return 0
    part = abs(contribution) / largest
    return (3 if part > 2 / 3 else 2 if part > 1 / 3 else 1) * (1 if contribution > 0 else -1)


def _signals(explanation: Explanation, width: int, top: int) -> Table:
    trace, places = explanation.trace, decimal_places(explanation)
    rows = largest_first(explanation)
    several = len(trace.channels) > 1
    value_places = decimals(row.value for row in rows)
    bar_width, room = (20, 20) if width >= 90 else (6, 9)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, width=width)
    table.add_column("contribution", justify="right", no_wrap=True)
    table.add_column("", width=bar_width, no_wrap=True)
    table.add_column("query word", ratio=2, no_wrap=True, overflow="ellipsis")
    table.add_column("text word", ratio=2, no_wrap=True, overflow="ellipsis")
    if several:
        table.add_column("channel", no_wrap=True, overflow="ellipsis", max_width=room)
    table.add_column("value", justify="right", no_wrap=True)

    def add(contribution: float, bar: Text, query: Text, text: Text, channel: str = "", value: str = "") -> None:
        figure = Text(fixed(contribution, places, sign=True))
        table.add_row(figure, bar, query, text, *([Text(channel)] if several else []), Text(value))

    largest = max((abs(row.contribution) for row in rows), default=0.0)

    def bar(contribution: float) -> Text:
        sign = 1 if contribution >= 0 else -1
        return Text(
            ("█" if sign > 0 else "▒") * (round(bar_width * abs(contribution) / largest) if largest else 0), _INK[sign]
        )

    for row in rows[:top]:
        value = fixed(row.value, value_places)
        if isinstance(row, Component):
            add(row.contribution, bar(row.contribution), Text(printable(row.name)), Text(), value=value)
            continue
        words = _placed(row.query_word, row.query_position, room), _placed(row.text_word, row.text_position, room)
        add(row.contribution, bar(row.contribution), *words, printable(row.channel), value)
    if rows[top:]:
        add(sum(row.contribution for row in rows[top:]), Text(), Text(f"{len(rows[top:])} more", "italic"), Text())
    add(trace.residual, Text(), Text("residual", "italic"), Text())
    total = Text(fixed(trace.score, places), "bold")
    table.add_row(total, Text(), Text("score", "bold"), Text(), *([Text()] if several else []), Text())
    return table


def _placed(word: str, position: int, room: int) -> Text:
    return Text.assemble(_short(printable(word), room), (f" {position + 1}", "italic"))


def _map(explanation: Explanation, width: int, channel: int) -> RenderResult:
    trace = explanation.trace
    if not trace.grid.size:
        why = "one side has no words" if trace.channels else "no score was taken apart by words"
        yield Text(f"No map: {why}.", "italic")
        return
    weights = word_weights(explanation)
    rows = worth_showing(len(explanation.query), weights[0], _MAP_ROWS)
    columns = worth_showing(len(explanation.text), weights[1], (width - _LABEL - 1) // 2)
    grid = trace.grid[channel]
    scale = Scale.of(grid)
    places = decimals(scale)
    path = paths(explanation).get(channel)
    took_part = {(s.left, s.right) for s in trace.signals if s.channel == channel}
    crowded = path is None and 2 * len(took_part) > grid.size  # marks everywhere would hide the map
    added = fixed(channel_contributions(explanation)[channel], decimal_places(explanation), sign=True)
    yield Text.assemble(
        (f"map of {printable(trace.channels[channel])}", "bold"),
        f", contribution {added}; ",
        f"{fixed(scale.low, places)} ",
        (_SHADES[-1][:0:-1], _INK[-1]) if scale.low < 0 else "",
        (_SHADES[1][1:], _INK[1]) if scale.high > 0 else "",
        f" {fixed(scale.high, places)}; ",
        "most cells took part" if crowded else "[] took part" if path is None else "● ─ │ ╲ the path",
    )
    yield from _heads([explanation.text[j] for j in columns])
    if path is None:
        drawn = {} if crowded else dict.fromkeys(took_part, "[]")
    else:
        drawn = dict(zip(path, _steps(path), strict=True))
    for i in rows:
        line = Text(set_cell_size(_short(printable(explanation.query[i]), _LABEL), _LABEL) + " ")
        for j in columns:
            line.append_text(_shade(scale.strength(float(grid[i, j])), drawn.get((i, j))))
        yield line
    notes = [
        f"{len(words) - len(shown)} of {len(words)} {side} words"
        for side, words, shown in (("query", explanation.query, rows), ("text", explanation.text, columns))
        if len(shown) < len(words)
    ]
    if notes:
        yield Text(f"Not in the map: {' and '.join(notes)}, which contribute least.", "italic")


def _heads(words: Sequence[str]) -> RenderResult:
    """The text words written downwards, two columns each."""
    letters = [regex.findall(r"\X", printable(word)) for word in words]
    letters = [word if len(word) <= _HEAD else [*word[: _HEAD - 1], "…"] for word in letters]
    height = max(map(len, letters), default=0)
    for line in range(height):
        # Words stand on the map, so the shorter ones begin further down.
        cut = [word[k] if (k := line - height + len(word)) >= 0 else " " for word in letters]
        yield Text(" " * (_LABEL + 1) + "".join(set_cell_size(c if cell_len(c) <= 2 else "□", 2) for c in cut).rstrip())


def _steps(path: list[tuple[int, int]]) -> list[str]:
    """How each cell of a path was reached, two columns each."""
    steps = ["● "]
    for (i, j), (k, m) in pairwise(path):
        steps.append("──" if i == k else "│ " if j == m else "╲ ")
    return steps


def _shade(strength: float, drawn: str | None) -> Text:
    sign = 1 if strength >= 0 else -1
    if drawn is not None:
        return Text(drawn, f"bold {_INK[sign]}")
    level = sum(abs(strength) >= limit for limit in (0.1, 0.35, 0.6, 0.85))
    return Text(_SHADES[sign][level] * 2, _INK[sign])


def _short(word: str, width: int) -> str:
    return word if cell_len(word) <= width else set_cell_size(word, width - 1).rstrip() + "…"
