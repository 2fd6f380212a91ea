"""How much memory a training step takes, and how time grows with the texts' length. Parts of networks.py."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from experiments.benchmarks.cpu_turns import Wanted, Work, gemm, line, take_turns, without
from experiments.benchmarks.every_model import DIMENSIONS, shards_of
from experiments.benchmarks.mv_lstm import WORDS, Plain
from experiments.benchmarks.spatial_gru import BATCH
from matchloom.batches import PairBatch
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.models import build_model
from matchloom.models.mv_lstm import MVLSTM
from matchloom.text.vocab import Vocab
from matchloom.training.config import TrainConfig
from matchloom.training.step import make_optimizer

TENSOR: dict[str, Any] = {"interaction": "tensor", "lexical": False, "normalize": False}
SIZE, STEPS = 50, 3
LENGTHS = (25, 50, 100, 200)
GROWING: list[tuple[str, str, dict[str, Any]]] = [
    ("MV-LSTM cosine", "mv_lstm", {"interaction": "cosine", "lexical": False}),
    ("MV-LSTM tensor", "mv_lstm", TENSOR),
    ("Match-SRNN", "match_srnn", {}),
]
FEW = 32  # pairs of a batch whose texts have up to 200 words


def memory(no_kernels: Callable[[], AbstractContextManager[None]], threads: int, wanted: Wanted) -> Iterator[Any]:
    """The highest resident memory of three steps above that behind a step of few pairs; in a fresh process each.

    `grid` is the same model with the kernels switched off: what a step took when it wrote the grid.
    """
    what = f"memory of a step, MV-LSTM tensor, {SIZE} x {SIZE}, batch {BATCH}: MB"
    if threads > 1 or not wanted(what):
        return
    contexts = {"ours": nullcontext, "grid": no_kernels, "plain": nullcontext}
    peaks = {who: _in_process(partial(_step_peak, who == "plain", context)) for who, context in contexts.items()}
    yield line(what, peaks, {}, {f"ours / {who}": peaks["ours"] / peaks[who] for who in ("grid", "plain")})


def growth(threads: int, rounds: int, wanted: Wanted) -> Iterator[Any]:
    """Pairs a second with both texts of 25 to 200 words, and how many times longer twice the words take."""
    torch.set_num_threads(1)
    vocab = Vocab.build([WORDS])
    for title, name, arguments in GROWING if threads == 1 else ():
        what = f"growth, {title}, batch {FEW}, forward: pairs/s"
        if not wanted(what):
            continue
        model = build_model(name, arguments, WordEmbedding(len(vocab), DIMENSIONS), seed=0)
        contenders: dict[str, Work] = {"GEMM": gemm}
        for length in LENGTHS:
            shard = shards_of(name, model, vocab, length, BATCH // FEW)[0]
            contenders[f"{length} words"] = without(partial(model, shard), FEW)
        speeds, wall = take_turns(contenders, rounds)
        longer = {f"{b} / {a}": speeds[f"{a} words"] / speeds[f"{b} words"] for a, b in pairwise(LENGTHS)}
        yield line(what, speeds, wall, longer)


def _in_process(work: Callable[[], float]) -> float:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_answer, args=(there, work))
    process.start()
    found: float = here.recv()
    process.join()
    return found


def _answer(there: Connection, work: Callable[[], float]) -> None:
    there.send(work())


def _resident(name: str) -> float:
    """MB, by Linux's own account: VmRSS now, VmHWM at most."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None, "resident memory is read from Linux's /proc"
    return int(found[1]) / 1024


def _step_peak(plain: bool, context: Callable[[], AbstractContextManager[None]]) -> float:
    torch.set_num_threads(1)
    vocab, config = Vocab.build([WORDS]), TrainConfig()
    ours = build_model("mv_lstm", TENSOR, WordEmbedding(len(vocab), DIMENSIONS), seed=0)
    # A few pairs first: what is loaded and set up once is no part of a step.
    few, many = (shards_of("mv_lstm", ours, vocab, *size)[0] for size in ((5, BATCH // 2), (SIZE, 1)))
    assert isinstance(ours, MVLSTM)
    model = Plain(ours, len(vocab)) if plain else ours
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.001) if plain else make_optimizer(ours, config)
    parameters = list(model.parameters())

    def step(shard: PairBatch) -> None:
        rows = shard.left.words[shard.left_rows], shard.right.words[shard.right_rows]
        losses = torch.relu(1 - (model(*rows) if plain else model(shard)))
        for parameter, gradient in zip(parameters, torch.autograd.grad(losses.mean(), parameters), strict=True):
            parameter.grad = gradient.coalesce() if gradient.is_sparse else gradient
        with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]
            optimizer.step()

    with context():
        step(few)
        before = _resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM begins anew
        for _ in range(STEPS):
            step(many)
    return _resident("VmHWM") - before
