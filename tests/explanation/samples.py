"""Explanations made by hand, with numbers that can be checked in the head."""

from __future__ import annotations

import numpy as np

from matchloom.explanation import Explanation
from matchloom.types import Component, Signal, Trace


def tensor_like() -> Explanation:
    """Two channels; contributions +0.5 +0.25 -0.125 +0.0625, rest -0.1875, score 0.5."""
    query, text = ["renew", "my", "passport"], ["a", "new", "passport", "abroad"]
    grid = np.array(
        [
            [[0.1, 0.8, 0.2, -0.4], [0.0, 0.1, 0.0, 0.1], [0.1, 0.2, 1.0, 0.3]],
            [[0.6, 0.7, 0.6, 0.6], [0.6, 0.6, 0.6, 0.6], [0.6, 0.6, 0.9, 0.8]],
        ],
        dtype=np.float32,
    )
    signals = [
        Signal(0, 1, 0, 0.8, 0.25),
        Signal(2, 2, 0, 1.0, 0.5),
        Signal(2, 2, 1, 0.9, -0.125),
        Signal(2, 3, 1, 0.8, 0.0625),
    ]
    return Explanation("mv_lstm", query, text, Trace(0.5, signals, -0.1875, grid, ["tensor 1", "tensor 2"]))


def lexical_like() -> Explanation:
    """One channel, one common word that occurs twice in the text, no rest."""
    grid = np.zeros((1, 2, 3), dtype=np.float32)
    grid[0, 1, 0] = grid[0, 1, 2] = 4.5
    signals = [Signal(1, 0, 0, 4.5, 6.25), Signal(1, 2, 0, 4.5, 6.25)]
    return Explanation("bm25", ["lost", "key"], ["key", "and", "key"], Trace(12.5, signals, 0.0, grid, ["exact"]))


def of_words(query: list[str], text: list[str], *, channel: str = "cosine") -> Explanation:
    """Every query word meets the text word at the same place (or the last), with contribution 1."""
    grid = np.ones((1, len(query), len(text)), dtype=np.float32)
    signals = [Signal(i, min(i, len(text) - 1), 0, 1.0, 1.0) for i in range(len(query))] if text else []
    return Explanation("scorer", query, text, Trace(float(len(signals)), signals, 0.0, grid, [channel]))


def path_like() -> Explanation:
    """A way through a map of 3 x 4 words: right, diagonal, down; and two components beside it."""
    grid = np.arange(12, dtype=np.float32).reshape(1, 3, 4) / 8
    cells = [(0, 0), (0, 1), (1, 2), (2, 2)]
    contributions = [0.25, 0.0, 0.5, -0.125]
    signals = [
        Signal(i, j, 0, float(grid[0, i, j]), contribution)
        for (i, j), contribution in zip(cells, contributions, strict=True)
    ]
    components = [Component("shared words", 0.5, 0.125), Component("new number", 1.0, -0.25)]
    trace = Trace(0.75, signals, 0.25, grid, ["forward"], components, paths=True)
    return Explanation("match_srnn", ["renew", "my", "passport"], ["a", "new", "passport", "abroad"], trace)
