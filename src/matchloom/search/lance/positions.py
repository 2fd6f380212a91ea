"""The positions of texts as an archive stores them: bytes that a late-interaction matcher matches without the text.

A position is what `Matcher.positions` gives: a word's numbers in int8, and its length. A table has two columns of them,
beside the pooled vectors by which candidates are found: the mean of a text's positions, at a length of one.

LanceDB's own column of many vectors a row was tried (0.40). It finds what it should, appended rows among it, but it
refuses int8: floats are four times these bytes, and an index copies them. To compare 1,000 texts of 20 words it took
110 ms of CPU time (45 with an index), which is ten times ours, and it knows no gates and no partners beyond the best.
From bytes beside pooled vectors and the full-text index a score is the one that `Matcher.score` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matchloom.layers.int8_positions import DIGITS
from matchloom.matcher import Positions
from matchloom.search.lance.table import POSITIONS, Vectors, unit


def pooled(texts: Sequence[Positions]) -> Vectors:
    """The mean of each text's positions, at a length of one; 0 where nothing was read. (N, D)"""
    # What was not read is 0, and remains so.
    return np.stack([unit(unit(one[:, :-DIGITS].astype(np.float32)).sum(axis=0)) for one in texts])


def as_columns(questions: Sequence[Positions], answers: Sequence[Positions]) -> dict[str, Any]:
    """Both sides as the table holds them."""
    sides = zip(POSITIONS, (questions, answers), strict=True)
    return {name: pa.array([one.tobytes() for one in texts], pa.binary()) for name, texts in sides}


def positions_of(rows: pa.Table, column: str, size: int) -> list[Positions]:
    """The positions of some rows; a ValueError where bytes are missing."""
    width = size + DIGITS
    return [np.frombuffer(one, np.int8).reshape(-1, width) for one in rows[column].to_pylist()]


def differ(found: Positions, again: Positions) -> bool:
    """Whether these are positions of two texts. A number at the border between two may be rounded to either."""
    return found.shape != again.shape or bool((np.abs(_wide(found) - _wide(again)) > 1).any())


def _wide(positions: Positions) -> NDArray[np.int16]:
    return positions[:, :-DIGITS].astype(np.int16)
