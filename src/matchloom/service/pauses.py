"""Pauses in which nobody is answered, kept short: walks through all objects, and threads that hold the interpreter.

Python looks for cycles among all objects whenever many new ones are there, which is when somebody asks for much: a
request that makes a million of them holds up all others for a quarter of a second. So the young are looked through as
always, and all of them when nobody asks, or at the latest after some minutes. Memory that requests have freed is given
back beside that.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable

from matchloom.basics.memory import Piles

# Seconds after which a thread that computes lets the loop go on. The loop gives up the interpreter whenever it reads,
# writes or looks at a file, six times a request, and waits so long to have it back. Threads compute no slower by it.
_SWITCH = 0.0001
_YOUNG, _MIDDLE = 2_000, 10  # new objects, and walks through these, after which a walk through older ones follows
_NEVER = 2**31 - 1
_LOOK = 1.0  # seconds between two looks
_LONGEST = 300.0  # seconds after which all objects are walked through though somebody asks
_OLD = 5  # walks of the second kind after which one through all is worth it


def keep_short() -> None:
    """From now on threads take short turns, and nothing walks through all objects by itself."""
    sys.setswitchinterval(_SWITCH)
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)


async def collect_when_idle(is_idle: Callable[[], bool]) -> None:
    """Walk through all objects when nobody asks."""
    last = time.monotonic()
    while True:
        await asyncio.sleep(_LOOK)
        if gc.get_count()[2] >= _OLD and (is_idle() or time.monotonic() - last > _LONGEST):
            gc.collect()
            last = time.monotonic()


async def give_back_freed() -> None:
    """Give back what piles up of freed memory, whoever asks."""
    piles = Piles()
    while True:
        await asyncio.sleep(_LOOK)
        await asyncio.to_thread(piles.look)
