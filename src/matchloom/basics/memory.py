"""Memory that was freed: the C library keeps it for the next request or step, and gives it back when it piles up."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

_KEPT = ((-3, 32 << 20), (-1, 512 << 20))  # M_MMAP_THRESHOLD, at its most, and M_TRIM_THRESHOLD
_HEAPS = -8  # M_ARENA_MAX
_PILE = 32 << 20  # bytes more than there were


@cache
def keep_memory() -> bool:
    """Have the C library keep freed memory for the next request or step, where it is glibc. Says whether it does.

    It gives large pieces back to the system and gets them again, thousands of page faults a step: a third of the
    processor time of a ranking, and two thirds of a step of a small network.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(name, value) == 1 for name, value in _KEPT)


def few_heaps() -> bool:
    """Have all threads take memory from two heaps: what one heap frees is of no use to another. Says whether it can."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_HEAPS, 2) == 1


def give_back() -> bool:
    """Have the C library give the system what was freed, wherever it lies. Says whether it can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # others run meanwhile: ctypes lets go of the interpreter
    return trim is not None and trim(0) >= 0


def resident() -> int:
    """Bytes that this process has in memory; 0 where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


class Piles:
    """What a long-lived process keeps does not pile up: each thread has a heap of its own, and none uses another's."""

    def __init__(self, most: int = _PILE) -> None:
        self._least, self._most = resident(), most

    def look(self) -> bool:
        """Give back what was freed, if the process has grown since it last did. Says whether it has."""
        now = resident()
        self._least = min(self._least, now)
        if now - self._least < self._most:
            return False
        give_back()
        self._least = resident()
        return True
