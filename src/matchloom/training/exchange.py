"""Bytes between the processes of one machine: each writes into memory that all map, and reads what others wrote.

A connection copies a message four times and wakes a thread for it, which takes as long as a tenth of a step. Here a
turn is one copy. The memory has no name: it is gone with the last process that maps it, however that ends.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from matchloom.kernels.native import Library, library

Bytes = NDArray[np.uint8]
Gathered = Callable[[Tensor], list[Tensor]]  # a tensor of each process, by a connection

_HALF = 4 << 20  # bytes; more go in several turns
_HEAD = 64  # bytes: the turn, and the length of what is in either half
_PATIENCE = 200_000_000  # nanoseconds until it is asked whether the others are still there


class Exchange:
    """The memory of all processes; `gather` is one exchange.

    What the last turn wrote is read while the next is written: so there are two halves, by turns.
    """

    def __init__(self, loaded: Library, rank: int, processes: Sequence[int], files: Sequence[int]) -> None:
        self._library, self._rank, self._processes = loaded, rank, processes
        memory = [np.frombuffer(mmap.mmap(file, _HEAD + 2 * _HALF), np.uint8) for file in files]
        self._heads = [one[:_HEAD].view(np.int64) for one in memory]
        self._halves = [one[_HEAD:].reshape(2, _HALF) for one in memory]
        places = [head.ctypes.data for head in self._heads]
        self._turns = (ctypes.c_void_p * len(places))(*places)
        self._turn = 0

    @classmethod
    def open(cls, rank: int, gathered: Gathered) -> Exchange | None:
        """Among all processes, or None where they are not on one machine or cannot share memory."""
        loaded, own = library(), -1
        if loaded is not None and os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
            own = _memory()
        all_files = [one.tolist() for one in gathered(torch.tensor([os.getpid(), own]))]
        files: list[int] = []
        try:
            if loaded is None or any(file < 0 for _, file in all_files):
                return None
            for process, file in all_files:
                try:
                    files.append(os.open(f"/proc/{process}/fd/{file}", os.O_RDWR | os.O_CLOEXEC))
                except OSError:
                    break
            opened = gathered(torch.tensor([len(files) == len(all_files)]))
            return cls(loaded, rank, [process for process, _ in all_files], files) if all(opened) else None
        finally:  # mapped memory stays
            for file in [*files, *([own] if own >= 0 else [])]:
                os.close(file)

    def gather(self, content: Bytes) -> list[Bytes]:
        """What each process gives, in their order; to be read before the turn after the next."""
        sizes = self._take_turn(content[:_HALF], len(content))
        half = self._turn % 2
        if max(sizes) <= _HALF:
            return [halves[half, :size] for halves, size in zip(self._halves, sizes, strict=True)]
        found = [np.empty(size, np.uint8) for size in sizes]
        for start in range(0, max(sizes), _HALF):
            if start:
                self._take_turn(content[start : start + _HALF], len(content))
            for one, halves in zip(found, self._halves, strict=True):
                part = one[start : start + _HALF]
                part[:] = halves[self._turn % 2, : len(part)]
        return found

    def _take_turn(self, content: Bytes, length: int) -> list[int]:
        """Write, and wait until all have; the lengths of what each has to say."""
        self._turn += 1
        half, head = self._turn % 2, self._heads[self._rank]
        self._halves[self._rank][half, : len(content)] = content
        head[1 + half] = length
        self._library.say_turn(head.ctypes.data, self._turn)
        while not self._library.wait_turn(self._turns, len(self._turns), self._turn, _PATIENCE):
            for rank, process in enumerate(self._processes):
                if _ended(process):
                    raise RuntimeError(f"process {rank} has ended")
        return [int(head[1 + half]) for head in self._heads]


def _memory() -> int:
    """The number of a file in memory that other processes of this user can open; -1 where the system has none."""
    try:
        file = os.memfd_create("matchloom")
    except (AttributeError, OSError):
        return -1
    try:
        os.posix_fallocate(file, 0, _HEAD + 2 * _HALF)  # or a full memory would end the process that writes into it
    except OSError:
        os.close(file)
        return -1
    return file


def _ended(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"  # it has ended, and nobody has asked for its code yet
