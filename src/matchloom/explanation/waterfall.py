"""The table of an explanation: what made the score, each row a step of a waterfall from 0 to it.

A pair of words is one row. Where it counts in several channels (the same word, its stem, its start) the row opens, and
shows each of them; nothing but HTML and CSS is needed for that.
"""

from __future__ import annotations

from typing import NamedTuple

from matchloom.explanation.cells import Cell, cells, decimal_places, ordered_components
from matchloom.explanation.explained import Explanation
from matchloom.explanation.markup import figure, safe_text, signed
from matchloom.explanation.rounding import decimals
from matchloom.types import Component

_ROWS = 25  # what a person still reads; the rest is one row


class WordPair(NamedTuple):
    """A pair of words with all of its signals, those that moved the score most first."""

    cells: list[Cell]

    @property
    def contribution(self) -> float:
        """What they added together."""
        return sum(cell.contribution for cell in self.cells)


def word_pairs(explanation: Explanation) -> list[WordPair]:
    """The signals by their two words, the pairs that moved the score most first."""
    found: dict[tuple[int, int], WordPair] = {}
    for cell in cells(explanation):
        found.setdefault((cell.query_position, cell.text_position), WordPair([])).cells.append(cell)
    return sorted(found.values(), key=lambda pair: -abs(pair.contribution))


def table_of(explanation: Explanation) -> str:
    """The pairs of words and the components, the residual and the score."""
    return _Table(explanation).html()


class _Table:
    def __init__(self, explanation: Explanation) -> None:
        self.trace, self.places = explanation.trace, decimal_places(explanation)
        self.several = len(self.trace.channels) > 1
        found: list[WordPair | Component] = [*word_pairs(explanation), *ordered_components(explanation)]
        found.sort(key=lambda one: -abs(one.contribution))
        self.shown, self.more = found[:_ROWS], found[_ROWS:]
        self.value_places = decimals(signal.value for signal in self.trace.signals)
        self.low, self.high = self._reach()
        self.total = 0.0  # so far

    def _reach(self) -> tuple[float, float]:
        """The least and the greatest of all sums on the way."""
        low = high = total = 0.0
        steps = [
            cell.contribution for one in self.shown for cell in (one.cells if isinstance(one, WordPair) else [one])
        ]
        for step in [*steps, sum(one.contribution for one in self.more), self.trace.residual]:
            total += step
            low, high = min(low, total), max(high, total)
        return low, high

    def html(self) -> str:
        bodies = [self._pair(one) if isinstance(one, WordPair) else self._named(one) for one in self.shown]
        if self.more:
            left = sum(one.contribution for one in self.more)
            bodies.append(_body(self._whole(f"{len(self.more)} more", left)))
        residual = "residual (bias, and what belongs to no word pair)"
        bodies.append(_body(self._whole(residual, self.trace.residual), self._score()))
        heads = [("query word", ""), ("text word", ""), *([("channel", "channel")] if self.several else [])]
        heads += [("value", "number value"), ("contribution", "number"), ("so far", "number running")]
        heads.append(("from 0 to the score", "fall"))
        return (
            '<section class="block"><h2>What made the score</h2>\n<div class="scroll-x"><table class="made" '
            'role="table">\n<thead role="rowgroup"><tr role="row">'
            + "".join(f'<th scope="col" role="columnheader" class="{css}">{name}</th>' for name, css in heads)
            + "</tr></thead>\n"
            + "\n".join(bodies)
            + "\n</table></div></section>"
        )

    def _pair(self, pair: WordPair) -> str:
        first = pair.cells[0]
        query = _placed(first.query_word, first.query_position)
        text = f'<td class="word" role="cell">{_placed(first.text_word, first.text_position)}</td>'
        if len(pair.cells) == 1:
            head = f'<tr role="row"><th scope="row" role="rowheader">{query}</th>{text}'
            return _body(f"{head}{self._cell(first)}</tr>")
        start = self.total
        inner = '<tr role="row" class="of"><th role="cell"></th><td role="cell"></td>'
        rows = [f"{inner}{self._cell(cell)}</tr>" for cell in pair.cells]
        # The row for all of them stands above, and ends where they end.
        end, self.total = self.total, start
        head = (
            f'<tr role="row"><th scope="row" role="rowheader">{query}</th>{text}<td class="channel" role="cell">'
            f"<details><summary>{len(pair.cells)} channels</summary></details></td>"
            '<td class="number value" role="cell"></td>'
        )
        whole = f"{head}{self._step(pair.contribution)}</tr>"
        self.total = end
        return _body(whole, *rows)

    def _cell(self, cell: Cell) -> str:
        channel = f'<td class="channel" role="cell">{safe_text(cell.channel)}</td>' if self.several else ""
        value = f'<td class="number value" role="cell">{figure(cell.value, self.value_places)}</td>'
        return f"{channel}{value}{self._step(cell.contribution)}"

    def _named(self, one: Component) -> str:
        return _body(self._whole(f"{safe_text(one.name)} ({figure(one.value, 3)})", one.contribution))

    def _whole(self, name: str, contribution: float) -> str:
        """A row that belongs to no pair of words."""
        span = 4 if self.several else 3
        head = f'<tr role="row" class="quiet"><th scope="row" role="rowheader" colspan="{span}">{name}</th>'
        return f"{head}{self._step(contribution)}</tr>"

    def _score(self) -> str:
        score, span = figure(self.trace.score, self.places), 4 if self.several else 3
        return (
            f'<tr role="row" class="total"><th scope="row" role="rowheader" colspan="{span}">score</th>'
            f'<td class="number" role="cell">{score}</td><td class="number running" role="cell">{score}</td>'
            f"{self._fall(0.0, self.trace.score, 'whole')}</tr>"
        )

    def _step(self, contribution: float) -> str:
        start, self.total = self.total, self.total + contribution
        return (
            f'<td class="number" role="cell">{signed(contribution, self.places)}</td>'
            f'<td class="number running" role="cell">{figure(self.total, self.places)}</td>'
            f"{self._fall(start, self.total, 'down' if round(contribution, self.places) < 0 else 'up')}"
        )

    def _percent(self, number: float) -> float:
        return 100 * (number - self.low) / (self.high - self.low) if self.high > self.low else 0.0

    def _fall(self, start: float, end: float, kind: str) -> str:
        a, b = sorted(min(100.0, max(0.0, self._percent(at))) for at in (start, end))
        return (
            f'<td class="fall" role="cell"><div style="--zero:{self._percent(0):.2f}%">'
            f'<i class="{kind}" style="--from:{a:.2f}%;--size:{b - a:.2f}%"></i></div></td>'
        )


def _body(*rows: str) -> str:
    inside = "\n".join(rows)
    return f'<tbody role="rowgroup">{inside}</tbody>'


def _placed(word: str, position: int) -> str:
    return f'<bdi>{safe_text(word)}</bdi><span class="at" title="position in the text">{position + 1}</span>'
