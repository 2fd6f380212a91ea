"""The networks against the best plain torch, and scores in single precision against double, as ratios in one run.

    python -m experiments.benchmarks.networks              # half an hour; to experiments/results/networks.json

Each row is written when it is measured; a run that was stopped goes on where it was, as long as the commit is the same.

No text occurs twice. Contenders take turns; a figure is the median over rounds of units for each second of processor
time, which a shared machine disturbs less than the clock (`wall` has the clock's). The rate of float32 matrix products
is measured among them. Two threads are two shards of a batch side by side, as in training. `plain` is torch alone:
nn.LSTM, conv2d, exp over one kernel at a time, topk over all cells, and for scores the same model with the kernels
switched off, in float32 (`single`) or as the float64 copy (`double`). Memory and growth are in network_sizes.py.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from multiprocessing.connection import Connection
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, normalize

from experiments import places
from experiments.benchmarks import network_sizes
from experiments.benchmarks.cpu_turns import Wanted, Work, gemm, in_turn, line, one_turn, scaled, take_turns, without
from experiments.benchmarks.every_model import DIMENSIONS, shards_of
from experiments.benchmarks.minilm import encoder
from experiments.benchmarks.mv_lstm import WORDS, Plain, text
from experiments.benchmarks.spatial_gru import BATCH
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.basics.memory import keep_memory
from matchloom.basics.parallel import thread_pool
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.kernels import k_max, lstm, native, products, spatial_gru
from matchloom.layers.dynamic_pooling import dynamic_max
from matchloom.layers.recurrence import BiLSTM
from matchloom.matcher import Matcher
from matchloom.models import build_model, float64_copy
from matchloom.models.base import PairModel
from matchloom.models.knrm import KNRM, LEAST, SCALE
from matchloom.models.match_pyramid import MatchPyramid
from matchloom.models.mv_lstm import MVLSTM
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.training.config import TrainConfig
from matchloom.training.step import make_optimizer, trained
from matchloom.types import Pair

RESULTS = places.RESULTS / "networks.json"
MODELS: list[tuple[str, str, dict[str, Any]]] = [
    ("MV-LSTM cosine", "mv_lstm", {"interaction": "cosine", "lexical": False}),
    ("MV-LSTM tensor", "mv_lstm", {"interaction": "tensor", "lexical": False, "normalize": False}),
    ("KNRM", "knrm", {}),
    ("MatchPyramid", "match_pyramid", {}),
]
SCORED: list[tuple[str, str, dict[str, Any]]] = [
    *MODELS[:2],
    ("MV-LSTM, the default", "mv_lstm", {}),
    ("Match-SRNN", "match_srnn", {}),
    *MODELS[2:],
    ("ARC-II", "arc_ii", {}),
    ("CNTN", "cntn", {}),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contender")
    parser.add_argument("--only", choices=PARTS, nargs="+", help="some parts; the others keep their figures")
    parser.add_argument("--again", action="store_true", help="measure rows again that this commit has measured already")
    options = parser.parse_args()
    known = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if RESULTS.exists() else []
    rows = {(row["threads"], row["part"], row["what"]): row for row in known if row["part"] in PARTS}
    about = {"rounds": options.rounds, "commit": commit()}
    keep_memory()
    for threads in (1, 2):
        for name in options.only or PARTS:

            def wanted(what: str, key: tuple[int, str] = (threads, name)) -> bool:
                row = rows.get((*key, what), {})
                return options.again or any(row.get(one) != value for one, value in about.items())

            for row in PARTS[name](threads, options.rounds, wanted):
                load = {"load": round(os.getloadavg()[0], 2)}
                rows[threads, name, row["what"]] = {"part": name, "threads": threads, **row, **about, **load}
                print(json.dumps(rows[threads, name, row["what"]]), flush=True)
                write(list(rows.values()))  # a run that is stopped goes on behind this row


def write(rows: list[dict[str, Any]]) -> None:
    """All rows, in the order of the parts."""
    rows.sort(key=lambda row: (row["threads"], list(PARTS).index(row["part"])))
    with atomic_write(RESULTS) as file:
        json.dump({"kernel": native.status(), "torch": str(torch.__version__), "rows": rows}, file, indent=1)
        file.write("\n")


@contextmanager
def no_kernels() -> Iterator[None]:
    """Torch alone, as where no compiler was found."""
    with ExitStack() as stack:
        for module in (k_max, lstm, native, products, spatial_gru, float64_copy):
            stack.enter_context(mock.patch.object(module, "library", return_value=None))
        yield


def recurrences(threads: int, rounds: int, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """The Bi-LSTM alone, in GFLOP/s of its products, beside the rate of matrix products."""
    N, L, D, H = BATCH, 50, 50, 50
    what = f"Bi-LSTM, {N} texts of {L} words, D = H = 50: GFLOP/s"
    if threads > 1 or not wanted(what):  # texts are divided among the threads as whole groups: `networks` shows it
        return
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    plain, ours = nn.LSTM(D, H, batch_first=True, bidirectional=True), BiLSTM(D, H)
    x, lengths, up = torch.randn(N, L, D, requires_grad=True), torch.full((N,), L), torch.randn(N, L, 2 * H)
    flop = 2.0 * 2 * N * L * 4 * H * (D + H)

    def back(states: Callable[[], Tensor], layer: nn.Module) -> Work:
        weights = [x, *layer.parameters()]
        return lambda: (torch.autograd.grad(states(), weights, up), 3 * flop)[1]

    contenders: dict[str, Work] = {
        "GEMM": gemm,
        "plain forward": without(lambda: plain(x), flop),
        "ours forward": without(lambda: ours(x, lengths), flop),
        "plain with backward": back(lambda: plain(x)[0], plain),
        "ours with backward": back(lambda: ours(x, lengths), ours),
    }
    speeds, wall = take_turns(contenders, rounds)
    ratios = {
        f"{what} {one} / {other}": speeds[f"ours {what}"] / speeds[name]
        for what in ("forward", "with backward")
        for one, other, name in (("ours", "plain", f"plain {what}"), ("ours", "GEMM", "GEMM"))
    }
    yield line(what, scaled(speeds), scaled(wall), ratios)


class PlainKNRM(nn.Module):
    """Kernel after kernel, as public implementations have it."""

    def __init__(self, ours: KNRM, words: int) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(words, DIMENSIONS, padding_idx=0), ours.head
        self.kernels = list(zip(ours.mu.tolist(), ours.sigma.tolist(), strict=True))

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Word ids (B, L) and (B, R) to scores (B,)."""
        u, v = (normalize(self.embedding(ids), dim=-1) for ids in (left, right))
        M = u @ v.transpose(1, 2)
        K = [
            torch.exp(-0.5 * (M - mu) ** 2 / sigma**2).sum(2).clamp_min(LEAST).log().sum(1)
            for mu, sigma in self.kernels
        ]
        scores: Tensor = self.head(SCALE * torch.stack(K, 1))[:, 0]
        return scores


class PlainPyramid(nn.Module):
    """MatchPyramid with torch's convolutions, and the package's own dynamic pooling, which is torch too."""

    def __init__(self, ours: MatchPyramid, words: int) -> None:
        super().__init__()
        self.embedding, self.grid = nn.Embedding(words, DIMENSIONS, padding_idx=0), ours.grid
        self.conv_1, self.conv_2, self.head = ours.conv_1, ours.conv_2, ours.head

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Word ids (B, L) and (B, R) to scores (B,)."""
        z = torch.relu(self.conv_1((self.embedding(left) @ self.embedding(right).transpose(1, 2))[:, None]))
        m, n = (torch.full((len(left),), ids.shape[1]) for ids in (left, right))
        z = max_pool2d(torch.relu(self.conv_2(dynamic_max(z, m, n, self.grid))), 2, ceil_mode=True)
        scores: Tensor = self.head(z.flatten(1))
        return scores


def plain_of(model: PairModel, words: int) -> nn.Module:
    """The best plain torch for a model."""
    if isinstance(model, MVLSTM):
        return Plain(model, words)
    return PlainKNRM(model, words) if isinstance(model, KNRM) else PlainPyramid(model, words)  # type: ignore[arg-type]


WHATS = ("forward", "with backward", "a step")


def networks(threads: int, rounds: int, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Forward, with backward, and a whole step with AdaGrad; pairs a second, batch 128.

    Plain torch has a process of its own, as it comes (`plain`) and with freed memory kept (`plain, kept`), there also
    with sparse gradients of its word vectors (`plain, sparse`), which is what training here has.
    """
    rows = [
        (f"{title}, {size} x {size}, batch {BATCH}: pairs/s", number, size)
        for size in (50, 20)
        for number, (title, _, _) in enumerate(MODELS)
    ]
    rows = [row for row in rows if wanted(row[0])]
    if not rows:
        return
    with Contender(threads, keep=False) as plain, Contender(threads, keep=True) as kept, Contender(threads) as ours:
        for name, number, size in rows:
            contenders = {"GEMM": ours.turn(number, size, "GEMM")}
            for who, process, own in (
                ("plain", plain, "plain"),
                ("plain, kept", kept, "plain"),
                ("plain, sparse", kept, "plain, sparse"),
                ("ours", ours, "ours"),
            ):
                contenders |= {f"{who} {what}": process.turn(number, size, f"{own} {what}") for what in WHATS}
            speeds, wall = in_turn(contenders, rounds)
            ratios = {
                f"{what}, ours / {who}": speeds[f"ours {what}"] / speeds[f"{who} {what}"]
                for who in ("plain", "plain, kept", "plain, sparse")
                for what in WHATS
            }
            yield line(name, speeds, wall, ratios)


class Contender:
    """A process that works when it is its turn."""

    def __init__(self, threads: int, *, keep: bool = True) -> None:
        context = multiprocessing.get_context("spawn")
        self.here, there = context.Pipe()
        self.process = context.Process(target=work_in_turn, args=(there, threads, keep), daemon=True)

    def __enter__(self) -> Contender:
        self.process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.here.send(None)
        self.process.join(30)

    def turn(self, *asked: Any) -> Callable[[], tuple[float, float]]:
        """One turn: units a second of processor time, and by the clock."""

        def run() -> tuple[float, float]:
            self.here.send(asked)
            speeds: tuple[float, float] = self.here.recv()
            return speeds

        return run


def work_in_turn(asked: Connection, threads: int, keep: bool) -> None:
    """Answer with the speed of what is asked for, until None is."""
    if keep:
        keep_memory()
    vocab, made = Vocab.build([WORDS]), ((-1, -1), {"": gemm})
    with thread_pool(threads) as pool:
        while (wanted := asked.recv()) is not None:
            number, size, name = wanted
            if made[0] != (number, size):
                made = ((number, size), works(number, size, threads, vocab, pool))
            asked.send(one_turn(made[1][name]))


def works(number: int, size: int, threads: int, vocab: Vocab, pool: Executor) -> dict[str, Work]:
    """All that is timed of a model and of the best plain torch."""
    _, name, arguments = MODELS[number]
    ours = build_model(name, arguments, WordEmbedding(len(vocab), DIMENSIONS), seed=0)
    optimizer = make_optimizer(ours, TrainConfig(optimizer="adagrad"))
    shards = shards_of(name, ours, vocab, size, threads)
    found = {"GEMM": gemm, **passes("ours", ours, optimizer, [(shard,) for shard in shards], pool)}
    ids = [(one.left.words[one.left_rows], one.right.words[one.right_rows]) for one in shards]
    for who, sparse in (("plain", False), ("plain, sparse", True)):
        plain: Any = plain_of(build_model(name, arguments, WordEmbedding(2, DIMENSIONS), seed=0), len(vocab))
        plain.embedding.sparse = sparse
        found |= passes(who, plain, torch.optim.Adagrad(plain.parameters(), lr=0.001), ids, pool)
    return found


def passes(
    who: str, model: nn.Module, optimizer: torch.optim.Optimizer, shards: Sequence[tuple[Any, ...]], pool: Executor
) -> dict[str, Work]:
    """The three things that are timed of a model; shards run side by side, with one thread each, as in training."""
    parameters = trained(model)

    def forward(shard: tuple[Any, ...]) -> None:
        with torch.no_grad():
            model(*shard)

    def gradients(shard: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
        found = torch.autograd.grad(torch.relu(1 - model(*shard)).sum(), parameters, allow_unused=True)
        return tuple(x if x is None or not x.is_sparse else x.coalesce() for x in found)

    def step() -> None:
        for parameter, *own in zip(parameters, *pool.map(gradients, shards), strict=True):
            found = [x for x in own if x is not None]
            parameter.grad = sum(found[1:], found[0]) / BATCH if found else None
        with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]
            optimizer.step()

    def all_of(work: Callable[[tuple[Any, ...]], Any]) -> Work:
        return lambda: (list(pool.map(work, shards)), BATCH)[1]

    return {
        f"{who} forward": all_of(forward),
        f"{who} with backward": all_of(gradients),
        f"{who} a step": lambda: (step(), BATCH)[1],  # type: ignore[func-returns-value]
    }


def scores(threads: int, rounds: int, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Matcher.score of 1,000 pairs and rank of 1,000 new candidates: ours, and torch alone in single and double."""
    rng, vocab = random.Random(0), Vocab.build([WORDS])
    torch.set_num_threads(threads)
    for title, name, arguments in SCORED:
        count = 250 if name == "arc_ii" else 1000
        row = f"{title}, {count} pairs 50 x 50, and 10 words to {count}: pairs/s"
        if not wanted(row):
            continue
        encoder = WordEmbedding(len(vocab), DIMENSIONS)
        model = build_model(name, arguments, encoder, seed=0).eval()
        reader = encoder.reader(Tokenizer("whitespace"), vocab)
        pairs = [Pair(text(50, rng), text(50, rng)) for _ in range(count)]
        contenders: dict[str, Work] = {}
        for who, context in (("ours", nullcontext), ("single", in_single), ("double", no_kernels)):
            contenders |= timed(who, Matcher(name, arguments, model, reader), pairs, text(10, rng), context)
        speeds, wall = take_turns(contenders, rounds)
        ratios = {
            f"{what} ours / {who}": speeds[f"ours, {what}"] / speeds[f"{who}, {what}"]
            for what in ("score", "rank")
            for who in ("single", "double")
        }
        yield line(row, speeds, wall, ratios)


def agreement(threads: int, _: int, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """How far scores by the kernels lie from those in double precision, beside how far scores lie apart."""
    rng, vocab = random.Random(0), Vocab.build([WORDS])
    for title, name, arguments in SCORED if threads == 1 else ():
        what = f"{title}, 100 pairs 50 x 50: scores by kernels and in double precision"
        if not wanted(what):
            continue
        encoder = WordEmbedding(len(vocab), DIMENSIONS)
        model, reader = (
            build_model(name, arguments, encoder, seed=0).eval(),
            encoder.reader(Tokenizer("whitespace"), vocab),
        )
        pairs = [Pair(text(50, rng), text(50, rng)) for _ in range(100)]
        ours = Matcher(name, arguments, model, reader).score(pairs)
        with no_kernels():
            double = Matcher(name, arguments, model, reader).score(pairs)
        found = {"largest difference": float(abs(ours - double).max()), "deviation of scores": float(double.std())}
        yield line(what, found, {}, {})


def timed(
    who: str, matcher: Matcher, pairs: list[Pair], query: str, context: Callable[[], AbstractContextManager[None]]
) -> dict[str, Work]:
    """Scores of pairs that have been read, and a ranking of texts that have not."""
    read, candidates = matcher.read_pairs(pairs), [pair.text for pair in pairs]

    def in_context(work: Callable[[], Any]) -> Work:
        def run() -> float:
            with context():
                work()
            return len(pairs)

        return run

    return {
        f"{who}, score": in_context(lambda: matcher.score_read(read)),
        f"{who}, rank": in_context(lambda: matcher.rank(query, candidates, top=10)),
    }


@contextmanager
def in_single() -> Iterator[None]:
    """Torch alone, in float32: what scores would cost without the promise that no batch moves them."""
    with no_kernels(), mock.patch.object(float64_copy.Float64Copy, "of", _itself):
        yield


def _itself(_: Any, model: PairModel) -> PairModel:
    return model


def memory(threads: int, _: int, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Memory of a training step with and without the kernels."""
    return network_sizes.memory(no_kernels, threads, wanted)


PARTS = {
    "encoder": encoder,
    "recurrences": recurrences,
    "networks": networks,
    "scores": scores,
    "agreement": agreement,
    "memory": memory,
    "growth": network_sizes.growth,
}

if __name__ == "__main__":
    main()
