"""The examples of one step of training: triples of a candidate list (hinge) or single pairs, cut into batches.

Every draw comes from the seed and the epoch alone, so that an interrupted run continues exactly where it stopped.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from matchloom.batches import PairBatch
from matchloom.data.batching import make_batch
from matchloom.data.tokenized import Rows
from matchloom.matcher import ReadPairs
from matchloom.training.config import COMPARING, TrainConfig
from matchloom.training.losses import cross_entropy, hinge, softmax, squared_error
from matchloom.types import MatchloomError, Pair

Step = list[list[Rows]]  # the members of the examples in each shard
_POOL = 32  # batches among which examples are ordered by length, so that padding is small and order still random


@dataclass(frozen=True)
class Shard:
    """A part of one step: its pairs, and what its loss needs to know of them."""

    batch: PairBatch
    examples: int
    positive: Tensor | None = None  # (T,) places in the batch
    negative: Tensor | None = None  # (T,)
    labels: Tensor | None = None  # (B,)

    def loss(self, scores: Tensor, config: TrainConfig) -> Tensor:
        """The sum of the losses of this shard's examples."""
        if self.positive is not None and self.negative is not None:
            positive, negative = self.positive.to(scores.device), self.negative.to(scores.device)
            if config.loss == "softmax":
                return softmax(scores, positive, negative)
            return hinge(scores, positive, negative, config.margin)
        assert self.labels is not None
        return {"cross_entropy": cross_entropy, "squared_error": squared_error}[config.loss](
            scores, self.labels.to(scores.device)
        )


class Groups(NamedTuple):
    """Which pairs make an example: each of `positives`, with the negatives of its list where the loss compares.

    `left_out` counts the queries without a positive or without a negative.
    """

    labels: NDArray[np.float32]
    positives: Rows
    negatives: list[Rows] | None
    left_out: int


def group_pairs(pairs: Sequence[Pair], config: TrainConfig) -> Groups:
    """Group labelled pairs as the loss wants them; those that teach nothing are refused in one line."""
    missing = sum(pair.label is None for pair in pairs)
    if missing:
        raise MatchloomError(
            f"{missing} of {len(pairs)} training pairs have no label; label every one, or none where all are positive",
            code="bad_labels",
        )
    labels = np.array([pair.label for pair in pairs], dtype=np.float32)
    return group_rows(labels, [pair.query_id or pair.query for pair in pairs], config)


def group_rows(labels: NDArray[np.float32], lists: Sequence[Hashable], config: TrainConfig) -> Groups:
    """The same for labels, each with the list that its pair belongs to."""
    if config.loss in COMPARING:
        return _lists(lists, labels)
    if config.loss == "cross_entropy" and not np.isin(labels, (0.0, 1.0)).all():
        raise MatchloomError(
            "cross_entropy needs labels 0 and 1; use squared_error for graded labels", code="bad_labels"
        )
    if len(set(labels.tolist())) < 2:
        raise MatchloomError(
            f"all training labels are equal: there is nothing to learn by {config.loss}; use hinge or softmax, which "
            "draw negatives from the other texts, or add pairs with label 0",
            code="bad_labels",
        )
    return Groups(labels, np.arange(len(labels)), None, 0)


def _lists(names: Sequence[Hashable], labels: NDArray[np.float32]) -> Groups:
    lists: dict[Hashable, tuple[list[int], list[int]]] = {}
    for n, name in enumerate(names):
        lists.setdefault(name, ([], []))[0 if labels[n] > 0 else 1].append(n)
    usable = [(good, bad) for good, bad in lists.values() if good and bad]
    if not usable:
        with_positives = sum(1 for good, _ in lists.values() if good)
        with_negatives = sum(1 for _, bad in lists.values() if bad)
        remedy = "label positives 1"
        if with_positives:
            remedy = "train independent pairs with the loss cross_entropy, or give those of one list one query_id"
        raise MatchloomError(
            f"no query of the {len(lists)} has both a positive and a negative text ({with_positives} have positives, "
            f"{with_negatives} have negatives); {remedy}",
            code="bad_labels",
        )
    positives = np.array([n for good, _ in usable for n in good], dtype=np.int64)
    negatives = [np.array(bad, dtype=np.int64) for good, bad in usable for _ in good]
    return Groups(labels, positives, negatives, len(lists) - len(usable))


class Examples(Protocol):
    """What a run asks of its examples. `read` holds the given pairs, `labels` their labels."""

    read: ReadPairs
    labels: NDArray[np.float32]

    def __len__(self) -> int: ...

    def steps(self, epoch: int) -> Iterator[Step]:
        """The batches of one epoch, each split into what its shards hold: the members of their examples."""
        ...

    def shard(self, members: list[Rows]) -> Shard:
        """The padded pairs of some examples."""
        ...


class TrainingExamples:
    """The training pairs as rows of tokenized texts, grouped into examples.

    With the hinge loss an example is a positive text with the negatives drawn for it, which share one encoding of their
    query; otherwise an example is a pair. `shards` is how many parts a batch has; `by_length` puts texts of like
    lengths into a batch.
    """

    def __init__(
        self, groups: Groups, read: ReadPairs, config: TrainConfig, *, shards: int, by_length: bool = True
    ) -> None:
        self.groups, self.read, self.config = groups, read, config
        self.labels = groups.labels
        self.shards, self.by_length = shards, by_length

    def __len__(self) -> int:
        return len(self.groups.positives)

    def steps(self, epoch: int) -> Iterator[Step]:
        """The batches of one epoch, each split into what its shards hold: the pairs of their examples."""
        rng = np.random.default_rng([self.config.seed, epoch])
        if self.groups.negatives is not None:
            members = [self._members(n, self.groups.negatives[n], rng) for n in range(len(self))]
            size = max(1, round(self.config.batch / np.mean([len(m) - 1 for m in members])))
        else:
            members = [np.array([n]) for n in self.groups.positives]
            size = self.config.batch
        lengths = np.array([self.read.right.lengths[self.read.right_rows[m]].max() for m in members])
        yield from batches(members, lengths if self.by_length else None, size, self.shards, rng)

    def _members(self, n: int, negatives: Rows, rng: np.random.Generator) -> Rows:
        if len(negatives) > self.config.negatives:
            negatives = rng.choice(negatives, self.config.negatives, replace=False)
        return np.concatenate([self.groups.positives[n : n + 1], negatives])

    def shard(self, members: list[Rows]) -> Shard:
        """The padded pairs of some examples."""
        left, right, left_rows, right_rows, features = self.read
        pairs = np.concatenate(members)
        known = None if features is None else features[pairs]
        batch = make_batch(left, right, left_rows[pairs], right_rows[pairs], known)
        if self.groups.negatives is None:
            return Shard(batch, len(pairs), labels=torch.from_numpy(self.groups.labels[pairs]))
        return compared(batch, members, self.config)


def batches(
    members: list[Rows], lengths: NDArray[np.int64] | None, size: int, shards: int, rng: np.random.Generator
) -> Iterator[Step]:
    """The examples in a random order, `size` in a batch; with lengths, those of like lengths are in one."""
    order = rng.permutation(len(members))
    found = []
    for start in range(0, len(order), size * _POOL):
        pool = order[start : start + size * _POOL]
        if lengths is not None:
            pool = pool[np.argsort(lengths[pool], kind="stable")]
        found += [pool[i : i + size] for i in range(0, len(pool), size)]
    for b in rng.permutation(len(found)):
        # Alternate examples go to different shards, which then have texts of the same lengths.
        parts = [found[b][s::shards] for s in range(shards)]
        yield [[members[n] for n in part] for part in parts if len(part)]


def compared(batch: PairBatch, members: list[Rows], config: TrainConfig) -> Shard:
    """Examples whose first member is the positive and whose others are its negatives."""
    starts = np.cumsum([0] + [len(m) for m in members[:-1]])
    positive = np.concatenate([np.full(len(m) - 1, s) for s, m in zip(starts, members, strict=True)])
    negative = np.concatenate([np.arange(s + 1, s + len(m)) for s, m in zip(starts, members, strict=True)])
    examples = len(members) if config.loss == "softmax" else len(positive)
    return Shard(batch, examples, torch.from_numpy(positive), torch.from_numpy(negative))
