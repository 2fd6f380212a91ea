"""An explanation as plain data, for programs."""

from __future__ import annotations

from typing import Any

from matchloom.explanation.cells import cells, channel_contributions, ordered_components, paths, word_contributions
from matchloom.explanation.explained import Explanation
from matchloom.explanation.rounding import significant


def as_dict(explanation: Explanation, *, grid: bool = False) -> dict[str, Any]:
    """An explanation as a dict that `json.dumps` takes. The keys are stable:

    - `scorer`: its name; `score`; `residual`: the part of the score that belongs to no pair of words
    - `query`, `text`: each `words` and `contributions`, what each word added to the score
    - `channels`: each `name` and `contribution`, what it added to the score
    - `signals`: each `query_word`, `text_word`, `query_position`, `text_position`, `channel`, `value`, `contribution`;
      those that moved the score most first
    - `components`: each `name`, `value` and `contribution`: what belongs to no pair of words but has a name
    - `paths`: ways through the map, for scorers that take one: each `channel` and `cells`, [query, text] positions
    - `grid`, if asked for: the whole interaction map, grid[channel][query position][text position]

    Positions count from 0. The contributions of signals and components and `residual` add up to
    `score`. Numbers carry 6 significant digits,
    the grid 4; what is not finite in the grid is null.
    """
    trace = explanation.trace
    query_contributions, text_contributions = word_contributions(explanation)
    plain: dict[str, Any] = {
        "scorer": explanation.scorer,
        "score": significant(trace.score, 6),
        "residual": significant(trace.residual, 6),
        "query": {"words": list(explanation.query), "contributions": [significant(s, 6) for s in query_contributions]},
        "text": {"words": list(explanation.text), "contributions": [significant(s, 6) for s in text_contributions]},
        "channels": [
            {"name": name, "contribution": significant(contribution, 6)}
            for name, contribution in zip(trace.channels, channel_contributions(explanation), strict=True)
        ],
        "signals": [
            {**cell._asdict(), "value": significant(cell.value, 6), "contribution": significant(cell.contribution, 6)}
            for cell in cells(explanation)
        ],
        "components": [
            {
                "name": component.name,
                "value": significant(component.value, 6),
                "contribution": significant(component.contribution, 6),
            }
            for component in ordered_components(explanation)
        ],
        "paths": [
            {"channel": trace.channels[channel], "cells": [list(cell) for cell in path]}
            for channel, path in paths(explanation).items()
        ],
    }
    if grid:
        plain["grid"] = [[[significant(v, 4) for v in row] for row in channel] for channel in trace.grid.tolist()]
    return plain
