"""The spatial GRU: cell loops, wavefront and native kernel, alone and inside Match-SRNN. Part of speed.py.

Batch 128, c = d = 10. There are two loops over the cells, both with `unbind` and no copies of h: one computes the
equations of the paper one by one, as one would write it; one is fused by hand to the fewest torch calls we found.
Loops and wavefront use one torch thread or all, whichever a short trial finds faster. The share of the GEMM rate
counts 6,400 FLOP a cell forward and three times that with backward; what the backward pass computes again is not
counted.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments import places
from experiments.benchmarks.turns import Work, gemm, row, take_turns
from matchloom.basics.parallel import thread_pool
from matchloom.batches import PairBatch, Texts
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.kernels import spatial_gru as kernel
from matchloom.layers.spatial_gru import SpatialGRU, diagonal_places, wavefront
from matchloom.models import build_model
from matchloom.models.match_srnn import MatchSRNN

BATCH, C, D = 128, 10, 10
PASSES = (("forward", False, 6400), ("forward+backward", True, 3 * 6400))
Run = Callable[[Tensor, Tensor, Tensor], Tensor]


def rows(rounds: int) -> Iterator[dict[str, Any]]:
    """All lines, one after the other."""
    for size in (50, 20):
        yield from alone(size, rounds)
        yield from whole_model(size, rounds)
    yield from unequal(rounds)
    yield one_pair(rounds)
    yield {"what": "spatial GRU, 50 x 50 forward+backward: extra memory, MB", "speeds": memory(), "ratios": {}}
    yield {"what": "spatial GRU, 50 x 50: largest gradient error", "speeds": gradient_error(), "ratios": {}}


def grids(B: int, L: int, R: int) -> Tensor:
    """Interactions (B, C, L, R), laid out as the tensor layer does."""
    return torch.randn(B, L, C, R).transpose(1, 2)


def by_cells(gru: SpatialGRU, cell: Callable[[list[Tensor], Tensor], Tensor]) -> Run:
    """A loop over cells; `cell` makes h of [h left, h top, h diagonal] and s."""

    def run(s: Tensor, m: Tensor, n: Tensor) -> Tensor:
        border = s.new_zeros(len(s), gru.dimensions)
        above = [border] * (s.shape[3] + 1)
        wanted = set(zip(m.tolist(), n.tolist(), strict=True))
        kept: dict[tuple[int, int], Tensor] = {}
        for i, line in enumerate(s.permute(2, 3, 0, 1).unbind(), start=1):
            here = [border]
            for j, x in enumerate(line.unbind(), start=1):
                here.append(cell([here[j - 1], above[j], above[j - 1]], x))
                if (i, j) in wanted:
                    kept[i, j] = here[j]
            above = here
        return torch.stack([kept[size][b] for b, size in enumerate(zip(m.tolist(), n.tolist(), strict=True))])

    return run


def by_loop(gru: SpatialGRU) -> Run:
    """The equations of section 4.2 as they stand."""

    def cell(h: list[Tensor], x: Tensor) -> Tensor:
        left, top, corner = h
        q = torch.cat([top, left, corner, x], 1)
        r = torch.sigmoid(nn.functional.linear(q, gru.W_r, gru.b_r))
        z = nn.functional.linear(q, gru.W_z, gru.b_z).view(len(x), 4, -1)
        z_i, z_l, z_t, z_d = torch.softmax(z, 1).unbind(1)
        near = torch.cat([left, top, corner], 1)
        candidate = torch.tanh(nn.functional.linear(x, gru.W, gru.b) + nn.functional.linear(r * near, gru.U))
        return z_l * left + z_t * top + z_d * corner + z_i * candidate

    return by_cells(gru, cell)


def by_fused_loop(gru: SpatialGRU) -> Run:
    """The fewest calls: one product for all gates and one for the candidate, inputs in the same order."""

    def run(s: Tensor, m: Tensor, n: Tensor) -> Tensor:
        weights, d = gru.weights(), gru.dimensions
        top, left, corner, x = torch.split(weights.gates, [d, d, d, s.shape[1]], 1)
        W = torch.cat([left, top, corner, x], 1).T
        U = weights.candidate.T

        def cell(near: list[Tensor], x: Tensor) -> Tensor:
            h = torch.cat(near, 1)
            a = torch.addmm(weights.gates_bias, torch.cat([h, x], 1), W)
            r = torch.sigmoid(a[:, : 3 * d])
            z_i, z = torch.split(torch.softmax(a[:, 3 * d :].view(len(x), 4, d), 1), [1, 3], 1)
            candidate = torch.tanh(torch.addmm(weights.candidate_bias, torch.cat([r * h, x], 1), U))
            return (z * h.view(len(x), 3, d)).sum(1) + z_i[:, 0] * candidate

        return by_cells(gru, cell)(s, m, n)

    return run


def by_wavefront(gru: SpatialGRU) -> Run:
    def run(s: Tensor, m: Tensor, n: Tensor) -> Tensor:
        h, _ = wavefront(s, gru.weights(), gates=False)
        return h[diagonal_places(s.shape[2], s.shape[3], s.device)[m - 1, n - 1], torch.arange(len(m))]

    return run


def by_kernel(gru: SpatialGRU) -> Run:
    return gru.forward


CONTENDERS: dict[str, Callable[[SpatialGRU], Run]] = {
    "loop": by_loop,
    "fused loop": by_fused_loop,
    "wavefront": by_wavefront,
    "kernel": by_kernel,
}


def work(run: Run, gru: SpatialGRU, train: bool, s: Tensor, m: Tensor, n: Tensor, threads: int) -> Work:
    s = s.clone().requires_grad_(train)

    def once() -> int:
        torch.set_num_threads(threads)
        if train:
            torch.autograd.grad(run(s, m, n).sum(), [s, *gru.parameters()])
        else:
            with torch.inference_mode():
                run(s, m, n)
        return len(s)

    return once


def better_threads(run: Run, gru: SpatialGRU) -> int:
    """One thread or all, by a trial on small grids."""
    s, m = grids(BATCH, 8, 8), torch.full((BATCH,), 8)
    took: dict[int, float] = {}
    for count in (all_threads(), 1) * 3:
        time.sleep(0.02)
        start = time.perf_counter()
        work(run, gru, True, s, m, m, count)()
        took[count] = min(took.get(count, 1e9), time.perf_counter() - start)
    return min(took, key=lambda count: took[count])


def all_threads() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def over_loops(speeds: dict[str, float], name: str = "kernel") -> dict[str, float]:
    return {f"{name} / {loop}": speeds[name] / speeds[loop] for loop in ("loop", "fused loop")}


def alone(size: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Full grids."""
    gru = SpatialGRU(C, D)
    s, m = grids(BATCH, size, size), torch.full((BATCH,), size)
    runs = {name: make(gru) for name, make in CONTENDERS.items()}
    counts = {name: all_threads() if name == "kernel" else better_threads(run, gru) for name, run in runs.items()}
    for what, train, flop in PASSES:
        contenders = {name: work(run, gru, train, s, m, m, counts[name]) for name, run in runs.items()}
        speeds = take_turns({**contenders, "GEMM": gemm(all_threads())}, rounds)
        rate = speeds.pop("GEMM")
        ratios = {**over_loops(speeds), "wavefront / loop": speeds["wavefront"] / speeds["loop"]}
        ratios["kernel's share of the GEMM rate"] = speeds["kernel"] * size * size * flop / rate
        speeds["GEMM, GFLOP/s"] = rate / 1e9
        yield row(f"spatial GRU, {size} x {size} {what}: pairs/s", speeds, ratios)


def whole_model(size: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Match-SRNN with word vectors of 50, run as the matcher and training run it: shards of a batch side by side.

    The same model on a loop may choose: on one thread, on all of torch's, or side by side.
    """
    torch.manual_seed(0)
    model = build_model("match_srnn", {}, WordEmbedding(20_000, 50), seed=0)
    assert isinstance(model, MatchSRNN)
    scan: Any = model.scans[0]
    usual = scan.forward
    words = [torch.randint(1, 20_000, (BATCH, size)) for _ in range(2)]

    def part(start: int, count: int) -> PairBatch:
        places, lengths = torch.arange(count), torch.full((count,), size)
        left, right = (Texts(x[start : start + count], lengths) for x in words)
        return PairBatch(left, right, places, places)

    def one(train: bool, batch: PairBatch) -> None:
        if train:
            torch.autograd.grad(model(batch).sum(), list(model.parameters()))
        else:
            with torch.inference_mode():
                model(batch)

    def contender(forward: Run, train: bool, shards: int, threads: int) -> Work:
        half = BATCH // shards
        batches = [part(n * half, half) for n in range(shards)]

        def once() -> int:
            scan.forward = forward
            torch.set_num_threads(threads)
            if shards == 1:
                one(train, batches[0])
            else:
                with thread_pool(shards) as pool:
                    list(pool.map(lambda batch: one(train, batch), batches))
            return BATCH

        return once

    cores = all_threads()
    for what, train, _ in PASSES:
        contenders = {"kernel": contender(usual, train, cores, cores)}
        for name in ("loop", "fused loop"):
            run = CONTENDERS[name](scan)
            choices = {key: contender(run, train, *key) for key in ((1, 1), (1, cores), (cores, cores))}
            fastest = take_turns({str(key): w for key, w in choices.items()}, 1)
            contenders[name] = next(w for key, w in choices.items() if fastest[str(key)] == max(fastest.values()))
        speeds = take_turns(contenders, rounds)
        yield row(f"whole Match-SRNN, {size} x {size} {what}: pairs/s", speeds, over_loops(speeds))
    scan.forward = usual


def unequal(rounds: int) -> Iterator[dict[str, Any]]:
    """Lengths of 5 to 50: batches as pairs come, with and without the kernel's grouping, and cut from sorted pairs."""
    sizes = np.random.default_rng(0).integers(5, 51, (2, 8 * BATCH))
    gru, grouping = SpatialGRU(C, D), kernel.groups

    def as_they_come(m: Any, n: Any, lanes: int, threads: int) -> list[Any]:
        return [np.arange(k, min(k + lanes, len(m))) for k in range(0, len(m), lanes)]

    def batches(order: Any) -> list[tuple[Tensor, Tensor, Tensor]]:
        cut = [torch.from_numpy(sizes[:, order[k : k + BATCH]]) for k in range(0, len(order), BATCH)]
        return [(grids(BATCH, int(m.max()), int(n.max())), m, n) for m, n in cut]

    def contender(parts: Any, groups: Any, train: bool) -> Work:
        works = [work(gru.forward, gru, train, s, m, n, all_threads()) for s, m, n in parts]

        def once() -> float:
            kernel.groups = groups
            done = sum(one() for one in works)
            kernel.groups = grouping
            return done

        return once

    mixed, ordered = batches(np.arange(sizes.shape[1])), batches(np.lexsort(sizes))
    for what, train, _ in PASSES:
        speeds = take_turns(
            {
                "no grouping": contender(mixed, as_they_come, train),
                "grouped in the batch": contender(mixed, grouping, train),
                "batches of sorted pairs": contender(ordered, grouping, train),
            },
            rounds,
        )
        ratios = {"sorted / no grouping": speeds["batches of sorted pairs"] / speeds["no grouping"]}
        yield row(f"spatial GRU kernel, 5 to 50 words, {what}: pairs/s", speeds, ratios)


def one_pair(rounds: int) -> dict[str, Any]:
    gru = SpatialGRU(C, D)
    s, m = grids(1, 50, 50), torch.full((1,), 50)
    speeds = take_turns({name: work(make(gru), gru, False, s, m, m, 1) for name, make in CONTENDERS.items()}, rounds)
    return row("spatial GRU, one pair, 50 x 50 forward: pairs/s", speeds, over_loops(speeds))


def gradient_error() -> dict[str, float]:
    """Kernel against the wavefront in double precision, 50 x 50: the largest difference over the largest gradient."""
    torch.manual_seed(0)
    gru = SpatialGRU(C, D)
    exact = SpatialGRU(C, D).double()
    exact.load_state_dict({name: x.double() for name, x in gru.state_dict().items()})
    s, m = grids(BATCH, 50, 50), torch.full((BATCH,), 50)
    weight = torch.randn(BATCH, D)

    def gradients(model: SpatialGRU, dtype: torch.dtype) -> dict[str, Tensor]:
        x = s.to(dtype).requires_grad_()
        found = torch.autograd.grad((model(x, m, m) * weight.to(dtype)).sum(), [x, *model.parameters()])
        return dict(zip(["s", *dict(model.named_parameters())], found, strict=True))

    ours, theirs = gradients(gru, torch.float32), gradients(exact, torch.float64)
    return {name: float((ours[name] - theirs[name]).abs().max() / theirs[name].abs().max()) for name in theirs}


def memory() -> dict[str, float]:
    """MB that one forward and backward pass at 50 x 50 adds to a process that holds s. Each in a new process."""
    found = {}
    for name in CONTENDERS:
        code = f"from experiments.benchmarks.spatial_gru import memory_here; print(memory_here({name!r}))"
        run = subprocess.run([sys.executable, "-c", code], cwd=places.ROOT, capture_output=True, text=True, check=True)
        found[name] = float(run.stdout)
    return found


def memory_here(name: str) -> float:
    gru = SpatialGRU(C, D)
    run = CONTENDERS[name](gru)
    small, m = grids(BATCH, 2, 2), torch.full((BATCH,), 2)
    work(run, gru, True, small, m, m, all_threads())()  # libraries and thread pools are there
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
