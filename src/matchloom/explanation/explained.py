"""One explained score, checked when it is made: an explanation that does not add up is never shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from matchloom.basics.validation import one_text, shown
from matchloom.explanation.source import Source, source_of
from matchloom.types import Explains, MatchloomError, Trace

if TYPE_CHECKING:
    from matchloom.explanation.terminal import TerminalView


class Side(NamedTuple):
    """A stretch of words that is shown under a name of its own: the query, the text, or a section of it."""

    name: str
    which: int  # 0 the query, 1 the text
    start: int
    end: int
    source: Source | None


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """One pair with its words and the trace of its score; `scorer` is the name of what scored it.

    It shows itself: `rich.print(explanation)` in a terminal, as the last line of a notebook's cell, `to_html()` as a
    page and `to_dict()` for programs. (What shows it is imported there and then: it reads explanations itself.)
    """

    scorer: str
    query: list[str]
    text: list[str]
    trace: Trace
    sections: tuple[tuple[str, int], ...] = ()  # where the text is several: the name and the first word of each
    sources: tuple[Source | None, ...] = ()  # the user's own texts, where they are known: of each of `sides()`

    def __post_init__(self) -> None:
        trace = self.trace
        shape = (len(trace.channels), len(self.query), len(self.text))
        if trace.grid.shape != shape:
            raise MatchloomError(
                f"scorer {self.scorer!r}: the grid of its trace has shape {trace.grid.shape}, expected {shape} "
                "(channels, query words, text words); correct its trace()",
                code="mismatch",
            )
        for signal in trace.signals:
            place = (signal.channel, signal.left, signal.right)
            if not all(0 <= index < size for index, size in zip(place, shape, strict=True)):
                raise MatchloomError(
                    f"scorer {self.scorer!r}: a signal of its trace lies at (channel, query word, text word) {place}, "
                    f"outside its grid of {shape}; correct its trace()",
                    code="mismatch",
                )
        for side in self.sides() if self.sources else ():
            if side.source is not None and not side.source.fits(side.end - side.start):
                raise MatchloomError(
                    f"scorer {self.scorer!r}: the {side.name} has {side.end - side.start} words, which are not at the "
                    "places that its tokenizer gives, one behind the other; correct its spans()",
                    code="mismatch",
                )
        contributions = [
            trace.residual,
            *(signal.contribution for signal in trace.signals),
            *(component.contribution for component in trace.components),
        ]
        # They are float32 sums that may cancel: the slack follows their size.
        slack = 1e-6 + 1e-4 * (abs(trace.score) + sum(map(abs, contributions)))
        if not (math.isfinite(slack) and abs(trace.score - sum(contributions)) <= slack):
            raise MatchloomError(
                f"scorer {self.scorer!r}: the contributions and the residual of its trace add up to "
                f"{sum(contributions):.6g}, but its score is {trace.score:.6g}; correct its trace()",
                code="mismatch",
            )

    def sides(self) -> list[Side]:
        """The query, and the text or its sections."""
        starts = [*self.sections] or [("text", 0)]
        ends = [start for _, start in starts[1:]] + [len(self.text)]
        sources = self.sources or (None,) * (len(starts) + 1)
        found = [Side("query", 0, 0, len(self.query), sources[0])]
        for (name, start), end, source in zip(starts, ends, sources[1:], strict=True):
            found.append(Side(name, 1, start, end, source))
        return found

    def __repr__(self) -> str:
        trace, count = self.trace, len(self.trace.signals)
        return (
            f"Explanation({self.scorer}: score {trace.score:.6g} of {len(self.query)} x {len(self.text)} words, "
            f"{count} signal{'' if count == 1 else 's'})"
        )

    def to_dict(self, *, grid: bool = False) -> dict[str, Any]:
        """Everything as plain data that `json.dumps` takes. The keys are stable:

        - `scorer`: its name; `score`; `residual`: the part of the score that belongs to no pair of words
        - `query`, `text`: each `words` and `contributions`, what each word added to the score
        - `text` also has `sections` where it is several texts: each `name` and `start`, the position of its first word
        - `query`, `text` or its sections also have a `source` where it is known: the `text` as it was given, and
          `spans`, [start, end] of each word in it
        - `channels`: each `name` and `contribution`, what it added to the score
        - `signals`: each `query_word`, `text_word`, `query_position`, `text_position`, `channel`, `value`,
          `contribution`; those that moved the score most first
        - `components`: each `name`, `value`, `contribution` and `channel` (or null): what belongs to no pair of words
          but has a name
        - `paths`: ways through the map, for scorers that take one: each `channel` and `cells`, [query, text] positions
        - `grid`, if asked for: the whole interaction map, grid[channel][query position][text position]

        Positions count from 0. The contributions of signals and components and `residual` add up to `score`. Numbers
        carry 6 significant digits, the grid 4; what is not finite in the grid is null.
        """
        from matchloom.explanation.as_json import as_dict

        return as_dict(self, grid)

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Explanation:
        """The explanation again that `to_dict` described, as far as its digits go.

        Args:
            plain: What `to_dict` gave; without the grid its map has the cells of its signals and no others.
        """
        from matchloom.explanation.from_json import from_dict

        return from_dict(plain)

    def to_html(self) -> str:
        """One page that needs no other file and no network; `render_html` puts several explanations on one."""
        from matchloom.explanation.html import render_html

        return render_html([self])

    def to_terminal(self, *, channel: str | None = None, top: int = 8) -> TerminalView:
        """What rich prints: the `top` signals, and the map of this channel or of the one that moved the score most."""
        from matchloom.explanation.terminal import TerminalView

        return TerminalView(self, channel, top)

    def __rich__(self) -> TerminalView:
        return self.to_terminal()

    def _repr_html_(self) -> str:
        from matchloom.pages.document import frame

        return frame(self.to_html(), "An explanation", scripts=True)


def explain(scorer: object, query: str, text: str) -> Explanation:
    """Say why a scorer gave this pair its score.

    The scorer must be able to say it (see `matchloom.types.Explains`). The result shows itself: see
    `Explanation`.

    Args:
        scorer: A matcher, or a lexical scorer that can explain itself.
        query: One text.
        text: The other.
    """
    if isinstance(scorer, str):
        raise MatchloomError(
            f"scorer is {shown(scorer)}; expected a scorer, such as a Matcher or BM25.fit(texts)", code="wrong_type"
        )
    query, text = one_text("query", query), one_text("text", text)
    name = str(getattr(scorer, "name", type(scorer).__name__))
    if not isinstance(scorer, Explains):
        raise MatchloomError(
            f"scorer {name!r} cannot explain its scores: it has no trace(query, text); choose a scorer that has one",
            code="not_supported",
        )
    return explanation_of(scorer, query, text, scorer.trace(query, text))


def explanation_of(scorer: object, query: str, text: str, traced: tuple[list[str], list[str], Trace]) -> Explanation:
    """The explanation of a score whose trace is there already."""
    name = str(getattr(scorer, "name", type(scorer).__name__))
    query_words, text_words, trace = traced
    tokenize = getattr(scorer, "tokenizer", None)
    sources = source_of(tokenize, query, query_words), source_of(tokenize, text, text_words)
    return Explanation(name, query_words, text_words, trace, sources=sources)
