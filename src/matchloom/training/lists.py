"""Training on whole lists: a question is one example, with some of its positives and some negatives for all of them.

Half of the negatives are those that share most words with the question, among DRAWN of its list: at the end these are
the ones it is mistaken about. A text is encoded once for the example, not once for each positive.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from matchloom.basics.arrays import distinct
from matchloom.data.batching import make_batch
from matchloom.data.tokenized import Rows
from matchloom.matcher import ReadPairs
from matchloom.text.vocab import UNKNOWN
from matchloom.training.config import TrainConfig
from matchloom.training.examples import Groups, Shard, Step, batches
from matchloom.types import MatchloomError

DRAWN = 30


class ListExamples:
    """The training pairs as rows of tokenized texts, a list of them for each question."""

    def __init__(
        self, groups: Groups, read: ReadPairs, config: TrainConfig, *, shards: int, by_length: bool = True
    ) -> None:
        if groups.negatives is None:
            raise MatchloomError(
                f"positives needs a loss that compares, hinge or softmax, found {config.loss}", code="conflict"
            )
        self.read, self.config, self.labels = read, config, groups.labels
        self.shards, self.by_length = shards, by_length
        lists: dict[int, tuple[list[int], Rows]] = {}  # by its first negative, which no other list has
        for positive, negatives in zip(groups.positives.tolist(), groups.negatives, strict=True):
            lists.setdefault(int(negatives[0]), ([], negatives))[0].append(positive)
        self.lists = [(np.array(positives, dtype=np.int64), negatives) for positives, negatives in lists.values()]
        self.overlap = self._overlaps()

    def __len__(self) -> int:
        return len(self.lists)

    def _overlaps(self) -> NDArray[np.int64]:
        """How many different words of its question each pair's text holds."""
        left, right, left_rows, right_rows, _ = self.read
        asked = [set(left.word_ids(row).tolist()) - {UNKNOWN} for row in range(len(left))]
        told = [set(right.word_ids(row).tolist()) for row in range(len(right))]
        return np.array([len(asked[i] & told[j]) for i, j in zip(left_rows, right_rows, strict=True)], dtype=np.int64)

    def steps(self, epoch: int) -> Iterator[Step]:
        """The batches of one epoch, each split into what its shards hold: the pairs of their lists."""
        rng = np.random.default_rng([self.config.seed, epoch])
        members = [self._members(positives, negatives, rng) for positives, negatives in self.lists]
        size = max(1, round(self.config.batch / np.mean([len(own) for own in members])))
        lengths = np.array([self.read.right.lengths[self.read.right_rows[m]].max() for m in members])
        yield from batches(members, lengths if self.by_length else None, size, self.shards, rng)

    def _members(self, positives: Rows, negatives: Rows, rng: np.random.Generator) -> Rows:
        """Positive pairs first, then negatives, as many as are wanted."""
        positives = rng.permutation(positives)[: self.config.positives]
        drawn = rng.permutation(negatives)[: max(DRAWN, self.config.negatives)]
        order = np.argsort(-self.overlap[drawn], kind="stable")
        hard, others = np.split(order, [self.config.negatives // 2])
        kept = np.concatenate([hard, rng.permutation(others)])[: self.config.negatives]
        return np.concatenate([positives, drawn[kept]])

    def shard(self, members: list[Rows]) -> Shard:
        """The padded pairs of some lists; each positive is set against all negatives of its list."""
        left, right, left_rows, right_rows, features = self.read
        pairs = np.concatenate(members)
        known = None if features is None else features[pairs]
        batch = make_batch(left, right, left_rows[pairs], right_rows[pairs], known)
        positive, negative, start = [], [], 0
        for member in members:
            places = np.arange(start, start + len(member))
            good, bad = places[self.labels[member] > 0], places[self.labels[member] <= 0]
            positive.append(np.repeat(good, len(bad)))
            negative.append(np.tile(bad, len(good)))
            start += len(member)
        firsts, others = np.concatenate(positive), np.concatenate(negative)
        examples = len(distinct(firsts)) if self.config.loss == "softmax" else len(firsts)
        return Shard(batch, examples, torch.from_numpy(firsts), torch.from_numpy(others))
