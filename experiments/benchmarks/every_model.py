"""Every model: pairs a second forward and forward + backward, all in turn. Part of speed.py.

Batch 128, D = 50, 20,000 words; every text has the same length and stands in one pair. A batch is cut into shards that
run side by side with one thread each, as in training. The machine's rate of float32 matrix products is measured among
the models, so that figures of different machines and hours can be compared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from experiments.benchmarks.mv_lstm import WORDS, text
from experiments.benchmarks.spatial_gru import BATCH, PASSES, all_threads
from experiments.benchmarks.turns import Work, row, take_turns
from matchloom.basics.parallel import thread_pool
from matchloom.batches import PairBatch
from matchloom.data.batching import features_of, make_batch
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.matcher import Matcher
from matchloom.models import MODELS, build_model
from matchloom.models.base import PairModel
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.training.config import TrainConfig
from matchloom.training.step import make_optimizer, trained

DIMENSIONS = 50
MATRIX = 1024


def rows(rounds: int) -> Iterator[dict[str, Any]]:
    """One line for each size and pass; the ratios are pairs for each million FLOP of matrix products."""
    vocab = Vocab.build([WORDS])
    for size in (20, 50):
        for what, train, _ in PASSES:
            with thread_pool(all_threads()) as pool:
                contenders: dict[str, Work] = {"GEMM": gemm(pool)}
                for name in MODELS:
                    contenders[name] = batch_of(name, vocab, size, train, pool)
                speeds = take_turns(contenders, rounds)
            rate = speeds.pop("GEMM")
            ratios = {name: 1e9 * speed / rate for name, speed in speeds.items()}
            speeds["GEMM, GFLOP/s"] = rate / 1e9
            yield row(f"every model, {size} x {size} {what}: pairs/s; ratio: pairs a GFLOP of GEMM", speeds, ratios)


def batch_of(name: str, vocab: Vocab, size: int, train: bool, pool: ThreadPoolExecutor) -> Work:
    """Score a batch, and with `train` find the gradient of every parameter that learns."""
    model = build_model(name, {}, WordEmbedding(len(vocab), DIMENSIONS), seed=0)
    make_optimizer(model, TrainConfig())  # sets the word vectors up as training has them
    parameters = trained(model)
    shards = shards_of(name, model, vocab, size, all_threads())

    def work(shard: PairBatch) -> None:
        if train:
            torch.autograd.grad(model(shard).sum(), parameters)
        else:
            with torch.inference_mode():
                model(shard)

    return lambda: all_done(pool, work, shards) * BATCH


def shards_of(name: str, model: PairModel, vocab: Vocab, size: int, count: int) -> list[PairBatch]:
    """A batch of texts of random words, in so many parts; a model that learns from the texts first has done so."""
    rng = random.Random(0)
    reader = model.encoder.reader(Tokenizer("whitespace"), vocab)
    table = Matcher(name, {}, model, reader).read([text(size, rng) for _ in range(2 * BATCH)])
    left = np.arange(BATCH)
    model.pretrain(table, table, np.stack([left, left + BATCH, np.ones_like(left)], axis=1), 0, False)
    features = features_of(table, table, left, left + BATCH)
    return [
        make_batch(table, table, part, part + BATCH, None if features is None else features[part])
        for part in np.array_split(left, count)
    ]


def gemm(pool: ThreadPoolExecutor) -> Work:
    """One product of square matrices for each worker."""
    matrices = [torch.randn(MATRIX, MATRIX) for _ in range(all_threads())]
    return lambda: all_done(pool, lambda matrix: matrix @ matrix, matrices) * len(matrices) * 2.0 * MATRIX**3


def all_done(pool: ThreadPoolExecutor, work: Callable[[Any], Any], items: Sequence[Any]) -> float:
    """Work on all items side by side, once."""
    list(pool.map(work, items))
    return 1.0
