"""An explanation from the plain data that `as_json` made, such as a service sends: the same on the other side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchloom.artifact import WRONG
from matchloom.explanation.explained import Explanation
from matchloom.explanation.source import Source
from matchloom.traces import MOST_CELLS
from matchloom.types import Component, MatchloomError, Signal, Trace


def from_dict(plain: Mapping[str, Any]) -> Explanation:
    """What `Explanation.from_dict` gives."""
    try:
        names = [channel["name"] for channel in plain["channels"]]
        paths = {names.index(path["channel"]): path["cells"] for path in plain["paths"]}
        query, text = plain["query"], plain["text"]
        shape = (len(names), len(query["words"]), len(text["words"]))
        signals = _signals(plain["signals"], names, paths)
        if "grid" in plain:
            grid = np.array(plain["grid"], dtype=np.float32).reshape(shape)  # null is not a number
        else:
            grid = _of_signals(signals, shape)
        trace = Trace(
            float(plain["score"]),
            signals,
            float(plain["residual"]),
            grid,
            names,
            [_component(one, names) for one in plain["components"]],
            sorted(paths),
        )
        sections = tuple((one["name"], one["start"]) for one in text.get("sections", ()))
        sides = [query, *(text["sections"] if sections else [text])]
        sources = tuple(_source(side) for side in sides)
        return Explanation(plain["scorer"], query["words"], text["words"], trace, sections, sources)
    except MatchloomError:
        raise
    except WRONG as error:
        raise MatchloomError(
            f"no explanation is described by this ({type(error).__name__}: {error}); expected what to_dict(grid=True) "
            "gives",
            code="wrong_format",
        ) from None


def _of_signals(signals: Sequence[Signal], shape: tuple[int, int, int]) -> NDArray[np.float32]:
    """The map as far as it took part in the score."""
    if shape[0] * shape[1] * shape[2] > MOST_CELLS:
        raise ValueError("its map is too large")
    grid = np.zeros(shape, np.float32)
    for one in signals:
        grid[one.channel, one.left, one.right] = one.value
    return grid


def _signals(plain: Sequence[Mapping[str, Any]], names: list[str], paths: Mapping[int, Any]) -> list[Signal]:
    """The signals; those of a path in its order, which is not that of their contributions."""
    found = [
        Signal(
            one["query_position"], one["text_position"], names.index(one["channel"]), one["value"], one["contribution"]
        )
        for one in plain
    ]
    places = {(channel, *cell): n for channel, cells in paths.items() for n, cell in enumerate(cells)}
    return sorted(found, key=lambda signal: places.get((signal.channel, signal.left, signal.right), -1))


def _component(plain: Mapping[str, Any], names: list[str]) -> Component:
    channel = plain["channel"]
    return Component(
        plain["name"], plain["value"], plain["contribution"], None if channel is None else names.index(channel)
    )


def _source(side: Mapping[str, Any]) -> Source | None:
    source = side.get("source")
    return None if source is None else Source(source["text"], [(start, end) for start, end in source["spans"]])
