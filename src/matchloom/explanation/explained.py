"""One explained score, checked when it is made: an explanation that does not add up is never shown."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matchloom.types import Explains, MatchloomError, Trace


@dataclass(frozen=True, eq=False)
class Explanation:
    """One pair with its words and the trace of its score; `scorer` is the name of what scored it."""

    scorer: str
    query: list[str]
    text: list[str]
    trace: Trace

    def __post_init__(self) -> None:
        trace = self.trace
        shape = (len(trace.channels), len(self.query), len(self.text))
        if trace.grid.shape != shape:
            raise MatchloomError(
                f"scorer {self.scorer!r}: the grid of its trace has shape {trace.grid.shape}, expected {shape} "
                "(channels, query words, text words); correct its trace()"
            )
        for signal in trace.signals:
            place = (signal.channel, signal.left, signal.right)
            if not all(0 <= index < size for index, size in zip(place, shape, strict=True)):
                raise MatchloomError(
                    f"scorer {self.scorer!r}: a signal of its trace lies at (channel, query word, text word) {place}, "
                    f"outside its grid of {shape}; correct its trace()"
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
                f"{sum(contributions):.6g}, but its score is {trace.score:.6g}; correct its trace()"
            )


def explain(scorer: object, query: str, text: str) -> Explanation:
    """Say why a scorer gave this pair its score.

    The scorer must be able to say it (see `matchloom.types.Explains`). Show the result with `TerminalView`
    (in the terminal), `as_dict` (as JSON) or `render_html` (as a page).

    Args:
        scorer: A matcher, or a lexical scorer that can explain itself.
        query: One text.
        text: The other.
    """
    name = str(getattr(scorer, "name", type(scorer).__name__))
    if not isinstance(scorer, Explains):
        raise MatchloomError(
            f"scorer {name!r} cannot explain its scores: it has no trace(query, text); choose a scorer that has one"
        )
    query_words, text_words, trace = scorer.trace(query, text)
    return Explanation(name, query_words, text_words, trace)
