"""Speeds as ratios within one run: contenders take turns, and the median of each is compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

Work = Callable[[], float]  # does something once and says how many units that was


def take_turns(contenders: dict[str, Work], rounds: int, *, seconds: float = 0.1) -> dict[str, float]:
    """Units a second of each: the median over rounds in which every one works for `seconds` at least, in turn."""
    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, work in contenders.items():
            # The threads of torch's last parallel loop spin for some milliseconds on cores that this one needs.
            time.sleep(0.02)
            start, done = time.perf_counter(), 0.0
            while (took := time.perf_counter() - start) < seconds:
                done += work()
            if turn:  # the first round warms up
                speeds[name].append(done / took)
    return {name: median(values) for name, values in speeds.items()}


def row(what: str, speeds: dict[str, float], ratios: dict[str, float]) -> dict[str, Any]:
    """One line of the table."""
    return {"what": what, "speeds": speeds, "ratios": ratios}


def gemm(threads: int) -> Work:
    """This machine's float32 matrix products; the unit is FLOP, so that the speed is the rate."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)

    def work() -> float:
        torch.set_num_threads(threads)
        torch.mm(a, b)
        return 2.0 * 1024**3

    return work
