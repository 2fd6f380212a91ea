"""A copy of dense vectors in eight bits, by which the entries nearest to a question are found without reading the rest.

Each vector is a step times whole numbers from -127 to 127, and how far that is from the vector is known. So are bounds
of every product: entries that may be among the best are compared with the vectors themselves, and what is found is what
a scan of all finds, to the bit (`kernels/coded.cpp`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchloom.kernels.native import address, library
from matchloom.lexical.columns import Floats, Ids
from matchloom.lexical.ranking import Owned

_WIDTH = 32  # codes that the kernel takes at once
_AT_ONCE = 10_000  # vectors that are rounded together
_MOST = 32_768  # numbers of a vector: products with more would not fit in 31 bits


class Coded:
    """The vectors of entries in eight bits, those of one entry after the other."""

    def __init__(self, codes: NDArray[np.int8], steps: NDArray[np.float32], errors: NDArray[np.float32]) -> None:
        """A ValueError where they do not fit together: the kernel asks no more."""
        if codes.dtype != np.int8 or steps.dtype != np.float32 or errors.dtype != np.float32:
            raise ValueError(f"codes of types {codes.dtype}, {steps.dtype} and {errors.dtype}")
        if codes.ndim != 2 or codes.shape[1] % _WIDTH or not steps.shape == errors.shape == codes.shape[:1]:
            raise ValueError(f"codes of shapes {codes.shape}, {steps.shape} and {errors.shape}")
        self._codes, self._steps, self._errors = (np.ascontiguousarray(one) for one in (codes, steps, errors))
        self._at = address(self._codes), address(self._steps), address(self._errors), codes.shape[1]

    @classmethod
    def of(cls, table: NDArray[np.float32], owned: Owned) -> Coded | None:
        """Of the rows that entries have; None for vectors of a length that the kernel does not take."""
        count, size = len(owned.places), table.shape[1]
        if size % 8 or not 0 < size <= _MOST:
            return None
        codes = np.zeros((count, size + -size % _WIDTH), dtype=np.int8)
        steps, errors = np.zeros((2, count), dtype=np.float32)
        for start in range(0, count, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            rows = table[owned.places[part]].astype(np.float64)
            own = (np.abs(rows).max(axis=1) / 127).astype(np.float32)
            step = np.where(own > 0, own, 1).astype(np.float64)
            code = np.clip(np.rint(rows / step[:, None]), -127, 127)
            lost = np.sqrt(((rows - step[:, None] * code) ** 2).sum(axis=1))
            codes[part, :size], steps[part] = code, step
            errors[part] = np.nextafter(lost.astype(np.float32), np.float32(np.inf))
        return cls(codes, steps, errors)

    def fits(self, table: NDArray[np.float32], owned: Owned) -> bool:
        """Whether they may be of these vectors."""
        size = table.shape[1]
        return len(owned.places) == len(self._codes) and size % 8 == 0 and size <= self._codes.shape[1]

    def best(
        self, table: NDArray[np.float32], owned: Owned, vector: Floats, most: int, alive: NDArray[np.bool_] | None
    ) -> Ids | None:
        """The entries whose best vector has the highest product, best first, equal ones by number; of those alive.

        An entry without vectors has 0. None where there is no kernel.
        """
        native, entries = library(), len(owned.starts) - 1
        if native is None:
            return None
        size = table.shape[1]
        if not self.fits(table, owned) or vector.shape != (size,):
            raise ValueError(f"codes of shape {self._codes.shape} for vectors of {size}, and {vector.shape}")
        table, vector = np.ascontiguousarray(table, np.float32), np.ascontiguousarray(vector, np.float64)
        mask = None if alive is None else np.ascontiguousarray(alive)
        out = np.empty(most, dtype=np.int64)
        found = native.nearest_entries(
            *self._at, address(table), size, address(vector), entries, *owned.at,
            None if mask is None else address(mask), most, address(out),
        )  # fmt: skip
        if found < 0:
            raise MemoryError("the native search ran out of memory")
        return out[:found]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        return {"codes": self._codes, "steps": self._steps, "errors": self._errors}

    @classmethod
    def load(cls, arrays: Mapping[str, NDArray[Any]]) -> Coded | None:
        """From what was saved; None where nothing was."""
        return cls(arrays["codes"], arrays["steps"], arrays["errors"]) if "codes" in arrays else None
