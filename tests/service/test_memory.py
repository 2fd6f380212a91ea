"""Freed memory is kept for the next request, and does not pile up (`basics/memory.py`)."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from matchloom.basics import memory
from matchloom.service import pauses

_SCATTER = """
import ctypes, threading
from matchloom.basics import memory
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

def scatter(pieces):  # of 8 kB, of which a 64th stays: no heap ends with what was freed
    made = [libc.malloc(8192) for _ in range(pieces)]
    for one in made:
        ctypes.memset(one, 1, 8192)
    for n, one in enumerate(made):
        if n % 64:
            libc.free(one)
"""
_SCATTERED = f"""{_SCATTER}
assert memory.keep_memory()
piles = memory.Piles()
thread = threading.Thread(target=scatter, args=(12_000,))
thread.start()
thread.join()
before = memory.resident()
assert piles.look()
print(before - memory.resident())
assert not piles.look(), "nothing has grown since"
"""


@pytest.mark.skipif("glibc" not in platform.libc_ver()[0], reason="another C library keeps nothing")
def test_what_was_freed_in_any_thread_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", _SCATTERED], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 48_000_000


_THREADS = f"""{_SCATTER}
LIMIT
begun, barrier = memory.resident(), threading.Barrier(8)

def work(own):  # one after the other, while all are there
    for n in range(8):
        if n == own:
            scatter(1000)
        barrier.wait()

threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(memory.resident() - begun)
"""


@pytest.mark.skipif("glibc" not in platform.libc_ver()[0], reason="another C library has other heaps")
def test_threads_that_share_heaps_use_what_others_freed() -> None:
    grown, plain = [], {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    for limit in ("", "assert memory.few_heaps()"):
        command = [sys.executable, "-c", _THREADS.replace("LIMIT", limit)]
        grown.append(int(subprocess.run(command, capture_output=True, check=True, env=plain).stdout))
    assert grown[1] < 32_000_000 < 48_000_000 < grown[0]


def test_nothing_is_done_unless_the_process_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([100, 101, 131, 90, 121, 123, 95, 94, 126, 200])
    given: list[int] = []
    monkeypatch.setattr(memory, "resident", lambda: next(sizes) << 20)
    monkeypatch.setattr(memory, "give_back", lambda: given.append(1))
    piles = memory.Piles()  # 100
    assert [piles.look() for _ in range(3)] == [False, False, False]  # 131 is 31 more; 90 is the least
    assert not piles.look()  # 121 is 31 more than 90
    assert piles.look()  # 123, and 95 when it was given back
    assert [piles.look() for _ in range(2)] == [False, True]  # 94, then 32 more, all of it in use
    assert len(given) == 2


def test_a_service_looks_while_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = asyncio.Event()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(pauses, "_LOOK", 0)
        monkeypatch.setattr(memory.Piles, "look", lambda _: loop.call_soon_threadsafe(looked.set))
        task = asyncio.create_task(pauses.give_back_freed())
        await asyncio.wait_for(looked.wait(), 60)
        task.cancel()

    asyncio.run(run())


def test_memory_is_kept_where_the_c_library_can() -> None:
    assert memory.keep_memory() == ("glibc" in platform.libc_ver()[0])


def test_a_system_that_does_not_tell_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert memory.resident() > 1_000_000 or not sys.platform.startswith("linux")
    monkeypatch.setattr(memory, "Path", lambda _: tmp_path / "none")
    assert memory.resident() == 0
