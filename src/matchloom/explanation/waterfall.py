"""The table of an explanation: what made the score, each row a step of a waterfall from 0 to it.

A pair of words is one row. Where it counts in several channels (the same word, its stem, its start) the row opens, and
shows each of them; nothing but HTML and CSS is needed for that.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from matchloom.explanation.cells import Cell, cells, decimal_places, ordered_components
from matchloom.explanation.explained import Explanation
from matchloom.pages.blocks import Cell as TableCell
from matchloom.pages.blocks import Column, Row, section, table
from matchloom.pages.contributions import Axis
from matchloom.pages.markup import figure, safe_text, signed
from matchloom.pages.numbers import decimals
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
        self.axis = self._axis()
        self.total = 0.0  # so far

    def _axis(self) -> Axis:
        """From the least to the greatest of all sums on the way."""
        steps = [
            cell.contribution for one in self.shown for cell in (one.cells if isinstance(one, WordPair) else [one])
        ]
        sums = [*accumulate([*steps, sum(one.contribution for one in self.more), self.trace.residual], initial=0.0)]
        return Axis(min(sums), max(sums))

    def html(self) -> str:
        bodies = [self._pair(one) if isinstance(one, WordPair) else [self._named(one)] for one in self.shown]
        if self.more:
            left = sum(one.contribution for one in self.more)
            bodies.append([self._whole(f"{len(self.more)} more", left)])
        residual = "residual (bias, and what belongs to no word pair)"
        bodies.append([self._whole(residual, self.trace.residual), self._score()])
        columns = [Column("query word"), Column("text word"), *([Column("channel", "channel")] if self.several else [])]
        columns += [Column("value", "number value"), Column("contribution", "number")]
        columns += [Column("so far", "number running"), Column("from 0 to the score", "fall")]
        name = "What made the score"
        return section(name, table(name, columns, *bodies, css="made", narrow=""))

    def _pair(self, pair: WordPair) -> list[Row]:
        first = pair.cells[0]
        words = [_placed(first.query_word, first.query_position), _placed(first.text_word, first.text_position)]
        if len(pair.cells) == 1:
            return [Row([*words, *self._cell(first)])]
        start = self.total
        rows = [Row(["", "", *self._cell(cell)], "of") for cell in pair.cells]
        # The row for all of them stands above, and ends where they end.
        end, self.total = self.total, start
        opener = f"<details><summary>{len(pair.cells)} channels</summary></details>"
        whole = Row([*words, opener, "", *self._step(pair.contribution)])
        self.total = end
        return [whole, *rows]

    def _cell(self, cell: Cell) -> list[str]:
        channel = [safe_text(cell.channel)] if self.several else []
        return [*channel, figure(cell.value, self.value_places), *self._step(cell.contribution)]

    def _named(self, one: Component) -> Row:
        return self._whole(f"{safe_text(one.name)} ({figure(one.value, 3)})", one.contribution)

    def _whole(self, name: str, contribution: float) -> Row:
        """A row that belongs to no pair of words."""
        return Row([self._wide(name), *self._step(contribution)], "quiet")

    def _score(self) -> Row:
        score = figure(self.trace.score, self.places)
        return Row([self._wide("score"), score, score, self.axis.bar(0.0, self.trace.score, "whole")], "total")

    def _wide(self, name: str) -> TableCell:
        return TableCell(name, span=4 if self.several else 3)

    def _step(self, contribution: float) -> list[str]:
        start, self.total = self.total, self.total + contribution
        kind = "down" if round(contribution, self.places) < 0 else "up"
        bar = self.axis.bar(start, self.total, kind)
        return [signed(contribution, self.places), figure(self.total, self.places), bar]


def _placed(word: str, position: int) -> str:
    return f'<bdi>{safe_text(word)}</bdi><span class="at" title="position in the text">{position + 1}</span>'
