"""An explanation as plain data, for programs."""

from __future__ import annotations

from typing import Any

from matchloom.explanation.cells import cells, channel_contributions, ordered_components, paths, word_contributions
from matchloom.explanation.explained import Explanation
from matchloom.pages.numbers import significant


def as_dict(explanation: Explanation, grid: bool) -> dict[str, Any]:
    """What `Explanation.to_dict` gives, whose docstring lists the keys."""
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
                "channel": None if component.channel is None else trace.channels[component.channel],
            }
            for component in ordered_components(explanation)
        ],
        "paths": [
            {"channel": trace.channels[channel], "cells": [list(cell) for cell in path]}
            for channel, path in paths(explanation).items()
        ],
    }
    query, *texts = explanation.sides()
    described = [plain["query"], plain["text"]]
    if explanation.sections:
        plain["text"]["sections"] = [{"name": side.name, "start": side.start} for side in texts]
        described = [plain["query"], *plain["text"]["sections"]]
    for side, one in zip([query, *texts], described, strict=True):
        if side.source is not None:
            one["source"] = {"text": side.source.text, "spans": [list(span) for span in side.source.spans]}
    if grid:
        plain["grid"] = [[[significant(v, 4) for v in row] for row in channel] for channel in trace.grid.tolist()]
    return plain
