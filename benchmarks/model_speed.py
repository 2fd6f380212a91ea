"""How fast each model is: pairs a second forward and forward + backward, all models in turn, in one run.

    python benchmarks/model_speed.py

Every text has the same length, and every text stands in one pair. A batch is cut in two shards that run side by side
with one thread each, as in training. The machine's rate of float32 matrix products is measured among the models, the
same way, so that figures of different machines and hours can be compared. Results go to
benchmarks/results/model_speed.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from matchloom.data.batching import TextTable, make_batch
from matchloom.files import atomic_write
from matchloom.models import MODELS, build_model
from matchloom.models.base import PairModel
from matchloom.parallel import side_by_side
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.training.config import TrainConfig
from matchloom.training.step import make_optimizer, trained
from matchloom.types import PairBatch
from provenance import commit

RESULTS = Path(__file__).parent / "results" / "model_speed.json"
WORDS = [f"w{n}" for n in range(20_000)]
DIMENSIONS = 50
WORKERS = 2
MATRIX = 1024


def rows(
    sizes: Sequence[int] = (20, 50), batch: int = 128, rounds: int = 7, names: Sequence[str] = tuple(MODELS)
) -> list[dict[str, Any]]:
    """For each model and text length the median pairs a second, and the GEMM rate (GFLOP/s) of the same rounds."""
    vocab = Vocab.build([WORDS])
    found = []
    for size in sizes:
        with side_by_side(WORKERS) as pool:
            contenders: dict[tuple[str, str], Callable[[], None]] = {("", "gemm"): gemm(pool)}
            for name in names:
                embedding = nn.Embedding(len(vocab), DIMENSIONS, padding_idx=0)
                model = build_model(name, {}, embedding, seed=0)
                make_optimizer(model, TrainConfig())  # sets the word vectors up as training has them
                shards = make_shards(model, vocab, size, batch)
                contenders[name, "forward"] = forward(model, shards, pool)
                contenders[name, "backward"] = backward(model, shards, pool)
            seconds = take_turns(contenders, rounds)
        rate = WORKERS * 2 * MATRIX**3 / seconds["", "gemm"] / 1e9
        for name in names:
            found.append(
                {
                    "model": name,
                    "size": size,
                    "batch": batch,
                    "forward": batch / seconds[name, "forward"],
                    "forward_backward": batch / seconds[name, "backward"],
                    "gemm_gflops": rate,
                }
            )
    return found


def make_shards(model: PairModel, vocab: Vocab, size: int, batch: int) -> list[PairBatch]:
    """A batch in two halves, its words drawn as rare and common words are."""
    rng = random.Random(0)
    texts = [" ".join(WORDS[int(len(WORDS) ** rng.random()) - 1] for _ in range(size)) for _ in range(2 * batch)]
    table = TextTable(texts, vocab, Tokenizer("whitespace"), lexical=model.needs_lexical)
    left = np.arange(batch)
    return [make_batch(table, table, part, part + batch) for part in np.array_split(left, WORKERS)]


def forward(model: PairModel, shards: list[PairBatch], pool: ThreadPoolExecutor) -> Callable[[], None]:
    """Score a batch."""

    def work(shard: PairBatch) -> None:
        with torch.inference_mode():
            model(shard)

    return lambda: all_done(pool, work, shards)


def backward(model: PairModel, shards: list[PairBatch], pool: ThreadPoolExecutor) -> Callable[[], None]:
    """Score a batch and find the gradient of every parameter that learns."""
    parameters = trained(model)

    def work(shard: PairBatch) -> None:
        torch.autograd.grad(model(shard).sum(), parameters)

    return lambda: all_done(pool, work, shards)


def gemm(pool: ThreadPoolExecutor) -> Callable[[], None]:
    """One product of square matrices for each worker."""
    matrices = [torch.randn(MATRIX, MATRIX, generator=torch.Generator().manual_seed(n)) for n in range(WORKERS)]

    def work(matrix: torch.Tensor) -> None:
        torch.mm(matrix, matrix)

    return lambda: all_done(pool, work, matrices)


def all_done(pool: ThreadPoolExecutor, work: Callable[[Any], None], items: Sequence[Any]) -> None:
    """Work on all items side by side and wait for the last."""
    list(pool.map(work, items))


def take_turns(contenders: dict[tuple[str, str], Callable[[], None]], rounds: int) -> dict[tuple[str, str], float]:
    """Seconds of each: the median over rounds in which every one has its turn. The first round warms up."""
    seconds: dict[tuple[str, str], list[float]] = {key: [] for key in contenders}
    for turn in range(rounds + 1):
        for key, work in contenders.items():
            start = time.perf_counter()
            work()
            if turn:
                seconds[key].append(time.perf_counter() - start)
    return {key: median(values) for key, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contender")
    parser.add_argument("--only", help="models with this in their name; prints the table and writes nothing")
    options = parser.parse_args()
    names = [name for name in MODELS if not options.only or options.only in name]
    measured = rows(rounds=options.rounds, names=names)
    sizes = sorted({row["size"] for row in measured})
    grid = Table("pairs/s, batch 128", title=f"{WORKERS} threads, D = {DIMENSIONS}, {len(WORDS):,} words")
    for size in sizes:
        for what in ("forward", "and backward"):
            grid.add_column(f"{size} x {size} {what}", justify="right")
    for name in names:
        own = [row for row in measured if row["model"] == name]
        grid.add_row(name, *(f"{row[key]:,.0f}" for row in own for key in ("forward", "forward_backward")))
    rates = {row["size"]: row["gemm_gflops"] for row in measured}
    grid.caption = "GEMM rate " + ", ".join(f"{rate:.0f} GFLOP/s at {size} x {size}" for size, rate in rates.items())
    Console(width=110).print(grid)
    if options.only:
        return
    about = {
        "commit": commit(),
        "workers": WORKERS,
        "dimensions": DIMENSIONS,
        "words": len(WORDS),
        "rounds": options.rounds,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "rows": measured,
    }
    with atomic_write(RESULTS) as file:
        json.dump(about, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
