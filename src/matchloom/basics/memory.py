"""Have the C library keep the memory that large tensors free, for the next ones."""

from __future__ import annotations

import ctypes
from functools import cache

_KEPT = ((-3, 32 << 20), (-1, 512 << 20))  # M_MMAP_THRESHOLD, at its most, and M_TRIM_THRESHOLD


@cache
def keep_memory() -> bool:
    """Have the C library keep freed memory for the next request or step, where it is glibc. Says whether it does.

    It gives large pieces back to the system and gets them again, thousands of page faults a step: a third of the
    processor time of a ranking, and two thirds of a step of a small network.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(name, value) == 1 for name, value in _KEPT)
