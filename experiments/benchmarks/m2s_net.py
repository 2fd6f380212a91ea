"""M2S-Net: whole training steps against the same network written plainly. Part of speed.py.

Needs TREC-QA and GloVe (the folder MATCHLOOM_DATA, or ../shared/data beside the project); without them no line is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import places
from experiments.benchmarks.turns import Work, row, take_turns
from experiments.reproduction.tasks import trecqa
from matchloom.basics.parallel import inline_pool
from matchloom.data.batching import features_of, make_batch
from matchloom.data.tokenized import Rows
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.models import model_training
from matchloom.models.m2s_net import M2SNet
from matchloom.training.adadelta import EPSILON, RHO, AdaDelta
from matchloom.training.config import TrainConfig
from matchloom.training.setup import set_up
from matchloom.training.step import make_optimizer, step
from matchloom.types import Pair

DATA = places.DATA
PAIRS = 4000


def rows(rounds: int) -> Iterator[dict[str, Any]]:
    """One line for one thread and one for all."""
    if not (DATA / "trecqa").exists():
        return
    most = torch.get_num_threads()
    for threads in sorted({1, most}):
        speeds = training_speed(threads, rounds)
        ratios = {f"ours / {name}": speeds["ours"] / speed for name, speed in speeds.items() if name != "ours"}
        yield row(f"training M2S-Net Metric-4 on TREC-QA, batch 50, {threads} threads: pairs/s", speeds, ratios)
    torch.set_num_threads(most)


class Plain(nn.Module):
    """M2S-Net as one would write it first: both texts in a frame of 40 x 40, torch's layers one after the other."""

    def __init__(self, ours: M2SNet) -> None:
        super().__init__()
        assert isinstance(ours.encoder, WordEmbedding)
        vectors = torch.from_numpy(ours.encoder.vectors().copy())
        self.embedding = nn.Embedding(len(vectors), ours.encoder.size, padding_idx=0, _weight=vectors)
        assert ours.similarity.B is not None
        self.U, self.B = (nn.Parameter(x.detach().clone()) for x in (ours.similarity.U, ours.similarity.B))
        layers: list[nn.Module] = []
        for filters, channels, pool in ((32, 4, 4), (64, 32, 5)):
            layers += [nn.Conv2d(channels, filters, 5, bias=False), nn.BatchNorm2d(filters), nn.AvgPool2d(pool)]
            layers.append(nn.Tanh())
        self.convolutions = nn.Sequential(*layers)
        blocks: Any = ours.blocks
        for block, layer in zip(blocks, (layers[0], layers[4]), strict=True):
            layer.load_state_dict({"weight": block.F.detach()})
        self.hidden, self.classes = (
            nn.Linear(ours.hidden.in_features, ours.hidden.out_features),
            nn.Linear(ours.classes.in_features, 2),
        )
        self.hidden.load_state_dict(ours.hidden.state_dict())
        self.classes.load_state_dict(ours.classes.state_dict())

    def forward(self, left: Tensor, right: Tensor, features: Tensor) -> Tensor:
        """Word ids (B, 40) with 0 around the texts, and the pair's features -> scores (B,)"""
        u, v = self.embedding(left), self.embedding(right)
        grid = torch.einsum("bid,kde,bje->bkij", u, self.U, v) + self.B
        grid = grid * ((left > 0)[:, None, :, None] & (right > 0)[:, None, None, :])
        x = self.convolutions(functional.dropout(grid, 0.1, self.training)).flatten(1)
        h = functional.dropout(torch.tanh(self.hidden(torch.cat([x, features], 1))), 0.5, self.training)
        logits: Tensor = self.classes(h)
        return logits[:, 1] - logits[:, 0]


class Runs:
    """Ours and the plain network with the same weights, on the same batches of TRAIN-ALL."""

    def __init__(self) -> None:
        task = trecqa(DATA, 0)
        draw = np.random.default_rng(0).permutation(len(task.train))[:PAIRS]
        self.pairs: list[Pair] = [task.train[n] for n in draw]
        self.config = TrainConfig(**model_training("m2s_net"))  # type: ignore[arg-type]
        ready = set_up(
            self.pairs,
            None,
            model="m2s_net",
            arguments={},
            config=self.config,
            tokenizer=task.tokenizer,
            vectors=task.vectors or "random",
            dimensions=50,
            min_count=1,
            device="cpu",
            progress=False,
        )
        self.matcher, self.examples, model = ready.matcher, ready.first_window()[1], ready.matcher.model
        assert isinstance(model, M2SNet)
        with torch.no_grad():
            model.similarity.U.normal_(std=0.01)  # as after some steps: from 0 nothing could be compared
        self.model = model
        self.steps = list(self.examples.steps(0))
        self.same()

    def plain_batch(self, members: Rows) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Texts in the middle of their frames, features made anew, labels."""
        pairs = [self.pairs[n] for n in members]
        left, right = self.matcher.read([p.query for p in pairs]), self.matcher.read([p.text for p in pairs])
        each = np.arange(len(pairs))
        features = features_of(left, right, each, each)
        batch = make_batch(left, right, each, each, features)
        frames = []
        for texts, which in ((batch.left, batch.left_rows), (batch.right, batch.right_rows)):
            frame = torch.zeros(len(pairs), 40, dtype=torch.long)
            for b, n in enumerate(which.tolist()):
                words = texts.words[n, : int(texts.lengths[n])][:40]
                start = (40 - len(words)) // 2
                frame[b, start : start + len(words)] = words
            frames.append(frame)
        labels = torch.tensor([float(p.label or 0) for p in pairs])
        return frames[0], frames[1], self.model.features(batch), labels

    def same(self) -> None:
        """Both give the same scores, or the comparison is worth nothing."""
        members = np.concatenate(self.steps[0][0])
        plain = Plain(self.model).eval()
        with torch.no_grad():
            theirs = plain(*self.plain_batch(members)[:3])
            ours = self.model.eval()(self.examples.shard(self.steps[0][0]).batch)
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
        self.model.train()

    def plain(self, rows_only: bool) -> Work:
        """Steps of the plain network: torch's AdaDelta over all vectors, or ours over the rows of a batch."""
        model = Plain(self.model).train()
        model.embedding.sparse = rows_only
        if rows_only:
            optimizer: torch.optim.Optimizer = AdaDelta(model.parameters(), lr=1.0)
        else:
            optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0, rho=RHO, eps=EPSILON)
        number = 0

        def work() -> float:
            nonlocal number
            members = np.concatenate(self.steps[number % len(self.steps)][0])
            number += 1
            left, right, features, labels = self.plain_batch(members)
            optimizer.zero_grad()
            loss = functional.binary_cross_entropy_with_logits(model(left, right, features), labels)
            (loss + self.config.weight_decay / 2 * model.U.square().sum()).backward()  # type: ignore[no-untyped-call]
            with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]
                optimizer.step()
            return float(len(labels))

        return work


def training_speed(threads: int, rounds: int) -> dict[str, float]:
    """Pairs a second of whole steps: batch, features, forward, backward, optimizer."""
    torch.set_num_threads(threads)
    runs = Runs()
    optimizer = make_optimizer(runs.model, runs.config)
    with inline_pool(threads) as pool:
        number = 0

        def ours() -> float:
            nonlocal number
            shards = runs.steps[number % len(runs.steps)]
            number += 1
            return float(step(runs.model, optimizer, runs.examples, shards, runs.config, pool).pairs)

        contenders = {"ours": ours, "plain": runs.plain(False), "plain, vectors by rows": runs.plain(True)}
        return take_turns(contenders, rounds, seconds=1.0)
