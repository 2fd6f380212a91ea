"""Speeds by processor time as ratios within one run: a shared machine disturbs it less than the clock.

Contenders take turns; a figure is the median over rounds. The clock's figures stand beside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch

Work = Callable[[], float]  # does something once and says how many units that was
Wanted = Callable[[str], bool]  # whether a row of this name is still to be measured


def one_turn(work: Work) -> tuple[float, float]:
    """Units a second of processor time, and by the clock, of one turn."""
    time.sleep(0.02)  # threads of torch's last loop spin for some milliseconds
    began, clock, done = time.process_time(), time.perf_counter(), 0.0
    while time.process_time() - began < 0.15:
        done += work()
    return done / (time.process_time() - began), done / (time.perf_counter() - clock)


def in_turn(
    contenders: dict[str, Callable[[], tuple[float, float]]], rounds: int
) -> tuple[dict[str, float], dict[str, float]]:
    """The medians over rounds in which every contender has its turn; the first round warms up."""
    speeds: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(rounds + 1):
        for name, turn in contenders.items():
            speeds[name].append(turn())
    each = {name: tuple(map(median, zip(*found[1:], strict=True))) for name, found in speeds.items()}
    return {name: both[0] for name, both in each.items()}, {name: both[1] for name, both in each.items()}


def take_turns(contenders: dict[str, Work], rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """The same in this process."""
    return in_turn({name: partial(one_turn, work) for name, work in contenders.items()}, rounds)


def gemm() -> float:
    """FLOP of one product of square matrices."""
    torch.mm(_MATRIX, _MATRIX)
    return 2.0 * len(_MATRIX) ** 3


_MATRIX = torch.randn(1024, 1024)


def without(work: Callable[[], Any], units: float) -> Work:
    """Without gradients."""

    def run() -> float:
        with torch.no_grad():
            work()
        return units

    return run


def scaled(speeds: dict[str, float]) -> dict[str, float]:
    """FLOP as GFLOP."""
    return {name: speed / 1e9 for name, speed in speeds.items()}


def line(what: str, speeds: dict[str, float], wall: dict[str, float], ratios: dict[str, float]) -> dict[str, Any]:
    """One line of the results, in three digits."""
    shown = [{name: float(f"{value:.3g}") for name, value in one.items()} for one in (speeds, wall, ratios)]
    return {"what": what, "speeds": shown[0], "wall": shown[1], "ratios": shown[2]}
