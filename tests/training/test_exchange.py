"""Memory that processes share: whole contents of any length, in every turn, and one line where a process is lost.

Threads stand for processes here; test_team.py has real ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch
from torch import Tensor

from matchloom.kernels.native import library
from matchloom.training import exchange
from matchloom.training.exchange import Exchange, Gathered

pytestmark = pytest.mark.skipif(library() is None, reason="the kernels are not built")


def gathered_by_threads(size: int) -> list[Gathered]:
    """What a connection does, for each of so many threads."""
    barrier, given = Barrier(size), [torch.zeros(1)] * size

    def of(rank: int) -> Gathered:
        def gathered(x: Tensor) -> list[Tensor]:
            given[rank] = x
            barrier.wait()
            found = list(given)
            barrier.wait()
            return found

        return gathered

    return [of(rank) for rank in range(size)]


def contents(rank: int) -> list[np.ndarray]:
    lengths = [0, 5, 64, 3, 70 * (rank + 1), 64 + rank, 0, 1, 400 * (2 - rank), 7]
    return [np.random.default_rng([rank, n]).integers(0, 256, size, np.uint8) for n, size in enumerate(lengths)]


def test_all_read_what_each_has_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_HALF", 64)  # bytes: longer ones go in several turns

    def work(rank: int, gathered: Gathered) -> list[list[bytes]]:
        shared = Exchange.open(rank, gathered)
        assert shared is not None
        return [[one.tobytes() for one in shared.gather(own)] for own in contents(rank)]

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(work, range(3), gathered_by_threads(3)))
    expected = [[one.tobytes() for one in row] for row in zip(*map(contents, range(3)), strict=True)]
    assert found == [expected] * 3


def test_a_turn_leaves_the_one_before_as_it_was() -> None:
    """Gradients are read after a faster process has begun the next turn."""
    first, second = np.full(10, 1, np.uint8), np.full(10, 2, np.uint8)
    alone = Exchange.open(0, lambda x: [x])
    assert alone is not None
    (held,) = alone.gather(first)
    alone.gather(second)
    assert (held == 1).all()


def test_without_memory_to_share_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Exchange.open(0, lambda x: [x, torch.tensor([x[0], -1])]) is None  # the other process has none
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")  # on two machines
    assert Exchange.open(0, lambda x: [x]) is None


def test_a_process_that_has_ended_is_not_waited_for() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    loaded, files = library(), [exchange._memory(), exchange._memory()]
    assert loaded is not None
    one = Exchange(loaded, 0, [os.getpid(), ended.pid], files)
    with pytest.raises(RuntimeError, match="process 1 has ended"):
        one.gather(np.zeros(3, np.uint8))
