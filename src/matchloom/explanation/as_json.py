"""An explanation as plain data, for programs."""

from __future__ import annotations

from typing import Any

from matchloom.explanation.cells import cells, channel_shares, ordered_parts, paths, word_shares
from matchloom.explanation.explained import Explanation
from matchloom.explanation.rounding import significant


def as_dict(explanation: Explanation, *, grid: bool = False) -> dict[str, Any]:
    """An explanation as a dict that `json.dumps` takes. The keys are stable:

    - `scorer`: its name; `score`; `rest`: the part of the score that belongs to no pair of words
    - `query`, `text`: each `words` and `shares`, what each word added to the score
    - `channels`: each `name` and `share`, what it added to the score
    - `signals`: each `query_word`, `text_word`, `query_position`, `text_position`, `channel`, `value`, `share`;
      those that moved the score most first
    - `parts`: each `name`, `value` and `share`: what belongs to no pair of words but has a name
    - `paths`: ways through the map, for scorers that take one: each `channel` and `cells`, [query, text] positions
    - `grid`, if asked for: the whole interaction map, grid[channel][query position][text position]

    Positions count from 0. The shares of signals and parts and `rest` add up to
    `score`. Numbers carry 6 significant digits,
    the grid 4; what is not finite in the grid is null.
    """
    trace = explanation.trace
    query_shares, text_shares = word_shares(explanation)
    plain: dict[str, Any] = {
        "scorer": explanation.scorer,
        "score": significant(trace.score, 6),
        "rest": significant(trace.rest, 6),
        "query": {"words": list(explanation.query), "shares": [significant(s, 6) for s in query_shares]},
        "text": {"words": list(explanation.text), "shares": [significant(s, 6) for s in text_shares]},
        "channels": [
            {"name": name, "share": significant(share, 6)}
            for name, share in zip(trace.channels, channel_shares(explanation), strict=True)
        ],
        "signals": [
            {**cell._asdict(), "value": significant(cell.value, 6), "share": significant(cell.share, 6)}
            for cell in cells(explanation)
        ],
        "parts": [
            {"name": part.name, "value": significant(part.value, 6), "share": significant(part.share, 6)}
            for part in ordered_parts(explanation)
        ],
        "paths": [
            {"channel": trace.channels[channel], "cells": [list(cell) for cell in path]}
            for channel, path in paths(explanation).items()
        ],
    }
    if grid:
        plain["grid"] = [[[significant(v, 4) for v in row] for row in channel] for channel in trace.grid.tolist()]
    return plain
