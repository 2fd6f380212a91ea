"""Dynamic pooling cell by cell."""

from __future__ import annotations

from torch import Tensor


def cell(a: int, length: int, size: int) -> slice:
    """The rows of a map of `length` rows that cell a of `size` holds."""
    first, behind = a * length // size, (a + 1) * length // size
    return slice(first, max(first + 1, behind))


def dynamic_max(x: Tensor, size: int) -> Tensor:
    """(C, m, n) -> (C, size, size)"""
    out = x.new_zeros(x.shape[0], size, size)
    for i in range(size):
        for j in range(size):
            out[:, i, j] = x[:, cell(i, x.shape[1], size), cell(j, x.shape[2], size)].flatten(1).max(1).values
    return out


def doubled(length: int, size: int) -> list[list[int]]:
    """The rows in each cell where rows are doubled until they suffice, and the last cells hold what is left over."""
    rows = list(range(length))
    while len(rows) < size:
        rows = [row for row in rows for _ in range(2)]
    each, over = divmod(len(rows), size)
    cells = []
    for a in range(size):
        count = each + (1 if a >= size - over else 0)
        cells.append(rows[:count])
        rows = rows[count:]
    return cells
