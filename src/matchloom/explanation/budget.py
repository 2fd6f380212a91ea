"""How much may be explained: a number of cells over all explanations of a call."""

from __future__ import annotations

import math

from matchloom.explanation.explained import Explanation


class CellBudget:
    """What is left. `explain` as searches take it: True for no limit, False or 0 for none, or a number of cells.

    A cell is a pair of words in one channel of a map. Answers are explained the best first, while there are cells left.
    """

    def __init__(self, explain: bool | int) -> None:
        self.left: float = math.inf if explain is True else float(explain)

    def __bool__(self) -> bool:
        return self.left > 0

    def allows(self, rows: int, columns: int, channels: int = 1) -> bool:
        """Whether a map of this size may be made."""
        return rows * columns * channels <= self.left

    def spend(self, made: Explanation) -> Explanation:
        """Count what was made."""
        self.left -= max(1, made.trace.grid.size)
        return made


NO_CELLS = CellBudget(False)
