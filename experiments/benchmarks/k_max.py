"""k-max pooling: the native kernel against torch, alone and inside CNTN. Part of speed.py.

One thread; texts of 50 words, 50 channels, windows of 3 words, as in the first layer of CNTN. Before the speeds are
taken, both must keep the same values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import torch

from experiments.benchmarks.every_model import DIMENSIONS, shards_of
from experiments.benchmarks.mv_lstm import WORDS
from experiments.benchmarks.spatial_gru import BATCH
from experiments.benchmarks.turns import Work, row, take_turns
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.kernels import k_max as kernel
from matchloom.kernels import native
from matchloom.layers import pooling
from matchloom.models import build_model
from matchloom.text.vocab import Vocab
from matchloom.training.config import TrainConfig
from matchloom.training.step import make_optimizer, trained

TEXTS, POSITIONS, CHANNELS, KEPT = 1024, 52, 50, 34


def rows(rounds: int) -> Iterator[dict[str, Any]]:
    """One line for pooling, one for CNTN's passes."""
    if native.library() is None:
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    for what, work in (("k-max pooling, 34 of 52 in 50 channels: texts/s", pool()), cntn()):
        speeds = take_turns({"kernel": work, "torch": without_kernel(work)}, rounds)
        yield row(f"{what}, 1 thread", speeds, {"kernel / torch": speeds["kernel"] / speeds["torch"]})
    torch.set_num_threads(before)


def without_kernel(work: Work) -> Work:
    """The same work by torch alone."""

    def plain() -> float:
        with patch.object(kernel, "serves", lambda _: False):
            return work()

    return plain


def pool() -> Work:
    """Pool texts of random values; both ways keep the same."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(TEXTS, POSITIONS, CHANNELS, generator=draw)
    lengths, k = torch.full((TEXTS,), POSITIONS), torch.full((TEXTS,), KEPT)
    kept = pooling.ordered_k_max(x, lengths, k)[0]
    assert torch.equal(kept, x.gather(1, pooling.ordered_places(x, lengths, k)))
    return lambda: float(len(pooling.ordered_k_max(x, lengths, k)[0]))


def cntn() -> tuple[str, Work]:
    """Forward and backward passes of a batch."""
    vocab = Vocab.build([WORDS])
    model = build_model("cntn", {}, WordEmbedding(len(vocab), DIMENSIONS), seed=0)
    make_optimizer(model, TrainConfig())
    (batch,) = shards_of("cntn", model, vocab, 50, 1)

    def work() -> float:
        torch.autograd.grad(model(batch).sum(), trained(model))
        return float(BATCH)

    return "CNTN, 50 x 50 forward+backward: pairs/s", work
