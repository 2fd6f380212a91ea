"""How fast is the spatial GRU: cell loop, wavefront and native kernel, alone and inside Match-SRNN, in one run.

    python benchmarks/spatial_gru.py           # about five minutes; results go to benchmarks/results/spatial_gru.json

Contenders take turns and the median of each is compared, batch 128: once by the clock on all threads, and once by the
processor time of one thread, which other work on the machine changes less. By the clock, the loop and the wavefront
use one thread or all, whichever a short trial finds faster. The share of the GEMM rate counts 6,400 FLOP a cell
forward and three times that with backward (c = d = 10); what the backward pass computes again is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from matchloom.files import atomic_write
from matchloom.kernels import native
from matchloom.kernels import spatial_gru as kernel
from matchloom.layers.spatial_gru import SpatialGRU, diagonal_places, wavefront
from matchloom.models import build_model
from matchloom.types import PairBatch, Texts

RESULTS = Path(__file__).parent / "results" / "spatial_gru.json"
BATCH, C, D = 128, 10, 10
Run = Callable[[Tensor, Tensor, Tensor], Tensor]


Clock = Callable[[], float]


def take_turns(contenders: dict[str, Callable[[], int]], rounds: int, clock: Clock) -> dict[str, float]:
    """Units a second of each: the median over rounds in which every one has its turn; the first round warms up."""
    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, work in contenders.items():
            start = clock()
            done = work()
            if turn:
                speeds[name].append(done / (clock() - start))
    return {name: median(values) for name, values in speeds.items()}


def label(clock: Clock, threads: int) -> str:
    return f"{threads} threads" if clock is time.perf_counter else "processor time of one thread"


def grids(B: int, L: int, R: int) -> Tensor:
    """Interactions (B, C, L, R), laid out as the tensor layer does."""
    return torch.randn(B, L, C, R).transpose(1, 2)


def by_loop(gru: SpatialGRU) -> Run:
    """A Python loop over cells, written as fast as one can: `unbind`, one product for all gates, no copies of h."""

    def run(s: Tensor, m: Tensor, n: Tensor) -> Tensor:
        weights = gru.weights()
        B, R, d = s.shape[0], s.shape[3], gru.dimensions
        top, left, corner, x = weights.gates.split([d, d, d, s.shape[1]], 1)
        W = torch.cat([left, top, corner, x], 1).T  # the order of the candidate's columns serves both products
        U = weights.candidate.T
        border = s.new_zeros(B, d)
        above = [border] * (R + 1)
        ends: list[Tensor] = []
        last: dict[int, set[int]] = {}
        for i, j in set(zip(m.tolist(), n.tolist(), strict=True)):
            last.setdefault(i - 1, set()).add(j - 1)
        kept: dict[tuple[int, int], Tensor] = {}
        for i, row in enumerate(s.permute(2, 3, 0, 1).unbind()):
            here = [border]
            for j, x in enumerate(row.unbind()):
                h = torch.cat([here[j], above[j + 1], above[j]], 1)
                a = torch.addmm(weights.gates_bias, torch.cat([h, x], 1), W)
                r = torch.sigmoid(a[:, : 3 * d])
                z_i, z = torch.softmax(a[:, 3 * d :].view(B, 4, d), 1).split([1, 3], 1)
                candidate = torch.tanh(torch.addmm(weights.candidate_bias, torch.cat([r * h, x], 1), U))
                here.append((z * h.view(B, 3, d)).sum(1) + z_i[:, 0] * candidate)
            above = here
            for j in last.get(i, ()):
                kept[i, j] = here[j + 1]
        for b, (i, j) in enumerate(zip(m.tolist(), n.tolist(), strict=True)):
            ends.append(kept[i - 1, j - 1][b])
        return torch.stack(ends)

    return run


def by_wavefront(gru: SpatialGRU) -> Run:
    def run(s: Tensor, m: Tensor, n: Tensor) -> Tensor:
        h, _ = wavefront(s, gru.weights(), gates=False)
        return h[diagonal_places(s.shape[2], s.shape[3], s.device)[m - 1, n - 1], torch.arange(len(m))]

    return run


def forward_work(run: Run, s: Tensor, m: Tensor, n: Tensor, threads: int) -> Callable[[], int]:
    def work() -> int:
        torch.set_num_threads(threads)
        with torch.inference_mode():
            run(s, m, n)
        return len(s)

    return work


def training_work(run: Run, gru: SpatialGRU, s: Tensor, m: Tensor, n: Tensor, threads: int) -> Callable[[], int]:
    s = s.clone().requires_grad_()

    def work() -> int:
        torch.set_num_threads(threads)
        torch.autograd.grad(run(s, m, n).sum(), [s, *gru.parameters()])
        return len(s)

    return work


def better_threads(run: Run, gru: SpatialGRU, threads: int) -> int:
    """One thread or all, by a trial on small grids. On a busy machine torch's threads wait for each other."""
    s, m = grids(BATCH, 8, 8), torch.full((BATCH,), 8)
    took = {}
    for count in (threads, 1, threads, 1):
        start = time.perf_counter()
        training_work(run, gru, s, m, m, count)()
        took[count] = min(took.get(count, 1e9), time.perf_counter() - start)
    return min(took, key=lambda count: took[count])


def gemm_work(threads: int) -> Callable[[], int]:
    """The unit is FLOP, so that the speed is the rate."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)

    def work() -> int:
        torch.set_num_threads(threads)
        for _ in range(8):
            a @ b
        return 8 * 2 * 1024**3

    return work


def alone(size: int, rounds: int, threads: int, clock: Clock) -> list[dict[str, Any]]:
    """Full grids, batch 128."""
    gru = SpatialGRU(C, D)
    s, m = grids(BATCH, size, size), torch.full((BATCH,), size)
    runs = {"loop": by_loop(gru), "wavefront": by_wavefront(gru), "kernel": gru}
    counts = {name: threads if name == "kernel" else better_threads(run, gru, threads) for name, run in runs.items()}
    rows = []
    for what, flop in (("forward", 6400), ("forward+backward", 3 * 6400)):
        contenders = {"gemm": gemm_work(threads)}
        for name, run in runs.items():
            if what == "forward":
                contenders[name] = forward_work(run, s, m, m, counts[name])
            else:
                contenders[name] = training_work(run, gru, s, m, m, counts[name])
        speeds = take_turns(contenders, rounds, clock)
        rate = speeds.pop("gemm")
        rows.append(
            {
                "what": f"{size} x {size} {what}, {label(clock, threads)}: pairs/s",
                **speeds,
                "kernel/loop": speeds["kernel"] / speeds["loop"],
                "wavefront/loop": speeds["wavefront"] / speeds["loop"],
                "GEMM GFLOP/s": rate / 1e9,
                "kernel share of GEMM": speeds["kernel"] * size * size * flop / rate,
                "threads": counts,
            }
        )
    return rows


def one_pair(rounds: int) -> dict[str, Any]:
    gru = SpatialGRU(C, D)
    s, m = grids(1, 50, 50), torch.full((1,), 50)
    runs = {"loop": by_loop(gru), "wavefront": by_wavefront(gru), "kernel": gru}
    speeds = take_turns({name: forward_work(run, s, m, m, 1) for name, run in runs.items()}, rounds, time.process_time)
    return {
        "what": "50 x 50 forward, one pair, processor time: pairs/s",
        **speeds,
        "kernel/loop": speeds["kernel"] / speeds["loop"],
    }


def unequal(rounds: int, threads: int, clock: Clock) -> list[dict[str, Any]]:
    """Lengths of 5 to 50: batches as pairs come, with and without the kernel's grouping, and cut from sorted pairs."""
    draw = np.random.default_rng(0)
    sizes = draw.integers(5, 51, (2, 8 * BATCH))
    gru = SpatialGRU(C, D)
    grouping = kernel.groups

    def as_they_come(m: Any, n: Any, lanes: int, threads: int) -> list[Any]:
        return [np.arange(k, min(k + lanes, len(m))) for k in range(0, len(m), lanes)]

    def batches(order: Any) -> list[tuple[Tensor, Tensor, Tensor]]:
        cut = [torch.from_numpy(sizes[:, order[k : k + BATCH]]) for k in range(0, len(order), BATCH)]
        return [(grids(BATCH, int(m.max()), int(n.max())), m, n) for m, n in cut]

    mixed, ordered = batches(np.arange(sizes.shape[1])), batches(np.lexsort(sizes))

    def work(parts: Any, groups: Any, train: bool) -> Callable[[], int]:
        def run() -> int:
            kernel.groups = groups
            for s, m, n in parts:
                if train:
                    training_work(gru, gru, s, m, n, threads)()
                else:
                    forward_work(gru, s, m, n, threads)()
            kernel.groups = grouping
            return sizes.shape[1]

        return run

    rows = []
    for train in (False, True):
        speeds = take_turns(
            {
                "no grouping": work(mixed, as_they_come, train),
                "grouped in the batch": work(mixed, grouping, train),
                "batches of sorted pairs": work(ordered, grouping, train),
            },
            rounds,
            clock,
        )
        what = f"5 to 50 words, {'forward+backward' if train else 'forward'}, {label(clock, threads)}: pairs/s"
        rows.append({"what": what, **speeds})
    return rows


def whole_model(size: int, rounds: int, threads: int, clock: Clock) -> list[dict[str, Any]]:
    """Match-SRNN with D = 50 word vectors, as it is and with its scan replaced by the loop."""
    torch.manual_seed(0)
    model = build_model("match_srnn", {}, nn.Embedding(20_000, 50, padding_idx=0), seed=0)
    (scan,) = model.scans  # type: ignore[union-attr, misc]
    loop = by_loop(scan)
    rows = torch.arange(BATCH)
    left, right = (Texts(torch.randint(1, 20_000, (BATCH, size)), torch.full((BATCH,), size)) for _ in range(2))
    batch = PairBatch(left, right, rows, rows)

    def work(forward: Run, train: bool, count: int) -> Callable[[], int]:
        def run() -> int:
            torch.set_num_threads(count)
            scan.forward = forward  # type: ignore[method-assign, union-attr]
            if train:
                torch.autograd.grad(model(batch).sum(), list(model.parameters()))
            else:
                with torch.inference_mode():
                    model(batch)
            return BATCH

        return run

    usual = scan.forward  # type: ignore[union-attr]
    slow = better_threads(loop, scan, threads)  # type: ignore[arg-type]
    found = []
    for train in (False, True):
        speeds = take_turns({"loop": work(loop, train, slow), "kernel": work(usual, train, threads)}, rounds, clock)
        passes = "forward+backward" if train else "forward"
        what = f"whole Match-SRNN {size} x {size} {passes}, {label(clock, threads)}: pairs/s"
        found.append({"what": what, **speeds, "kernel/loop": speeds["kernel"] / speeds["loop"]})
    return found


def extra_memory(name: str) -> float:
    """MB that one forward and backward pass at 50 x 50, batch 128, adds to a process that holds s. In a new process."""
    code = f"import spatial_gru; print(spatial_gru.memory_here({name!r}))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def memory_here(name: str) -> float:
    gru = SpatialGRU(C, D)
    run: Run = {"loop": by_loop, "wavefront": by_wavefront, "kernel": lambda gru: gru}[name](gru)
    small, m = grids(BATCH, 2, 2), torch.full((BATCH,), 2)
    training_work(run, gru, small, m, m, torch.get_num_threads())()  # libraries and thread pools are there
    s = grids(BATCH, 50, 50).requires_grad_()
    before = peak = resident()
    done = Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.0005):
            peak = max(peak, resident())

    watcher = Thread(target=watch)
    watcher.start()
    torch.autograd.grad(run(s, m + 48, m + 48).sum(), [s, *gru.parameters()])
    done.set()
    watcher.join()
    return (peak - before) / 1e6


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contender")
    options = parser.parse_args()
    threads = torch.get_num_threads()
    load = os.getloadavg()[0]
    rows: list[dict[str, Any]] = []
    # Other work on the machine changes the time that passes, and the time that processors spend on this much less.
    for clock, count in ((time.perf_counter, threads), (time.process_time, 1)):
        for size in (50, 20):
            rows += alone(size, options.rounds, count, clock)
            rows += whole_model(size, options.rounds, count, clock)
        rows += unequal(options.rounds, count, clock)
    rows.append(one_pair(options.rounds))
    torch.set_num_threads(threads)
    memory = {name: extra_memory(name) for name in ("kernel", "wavefront", "loop")}
    rows.append({"what": "extra memory of 50 x 50 forward+backward, MB", **memory})
    columns = ["loop", "wavefront", "kernel", "kernel/loop", "kernel share of GEMM"]
    table = Table("", *columns)
    for row in rows:
        cells = [
            f"{row[k]:.1%}" if "share" in k and k in row else f"{row[k]:,.1f}" if k in row else "" for k in columns
        ]
        table.add_row(row["what"], *cells)
        if "no grouping" in row:
            table.add_row("; ".join(f"{k} {v:,.0f}" for k, v in row.items() if k != "what"), *[""] * len(columns))
    Console(width=130).print(table)
    print(native.status())
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    about = {
        "commit": subprocess.run(describe, capture_output=True, text=True).stdout.strip(),
        "kernel": native.status(),
        "threads": threads,
        "load before": load,
        "load after": os.getloadavg()[0],
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "rounds": options.rounds,
        "rows": rows,
    }
    with atomic_write(RESULTS) as file:
        json.dump(about, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
