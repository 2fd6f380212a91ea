"""A question is one example: some of its right texts, and wrong ones half of which share its words."""

from __future__ import annotations

import numpy as np
import torch

from matchloom.data.reader import Reader
from matchloom.data.tokenized import deduplicate
from matchloom.matcher import ReadPairs
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.training.config import TrainConfig
from matchloom.training.examples import group_pairs
from matchloom.training.lists import ListExamples
from matchloom.types import Pair


def make_pairs(lists: int = 5, right: int = 4, wrong: int = 40) -> list[Pair]:
    """Of the wrong texts of a list, every fourth shares a word with its question."""
    made = []
    for q in range(lists):
        made += [Pair(f"what is w{q}", f"right {q} {n}", 1.0, f"q{q}") for n in range(right)]
        made += [
            Pair(f"what is w{q}", f"w{q} {n}" if n % 4 == 0 else f"wrong {q} {n}", 0.0, f"q{q}") for n in range(wrong)
        ]
    return made


def make_examples(pairs: list[Pair], **config: int | str) -> ListExamples:
    chosen = TrainConfig(**{"loss": "softmax", "positives": 3, "negatives": 6, "batch": 36, **config})
    (left, left_rows), (right, right_rows) = (deduplicate([pair[side] for pair in pairs]) for side in (0, 1))
    reader = Reader(Tokenizer("whitespace"), Vocab.build([text.split() for text in left + right]))
    read = ReadPairs(reader.read(left), reader.read(right), left_rows, right_rows, None)
    return ListExamples(group_pairs(pairs, chosen), read, chosen, shards=1)


def members(examples: ListExamples, epoch: int) -> list[list[int]]:
    return [one.tolist() for step in examples.steps(epoch) for shard in step for one in shard]


def test_each_question_stands_once_with_half_of_its_negatives_hard() -> None:
    pairs = make_pairs()
    examples = make_examples(pairs)
    assert len(examples) == 5
    steps = list(examples.steps(0))
    assert [sum(len(shard) for shard in step) for step in steps] in ([4, 1], [1, 4])  # 36 pairs
    found = members(examples, 0)
    assert sorted(pairs[one[0]].query_id for one in found) == [f"q{n}" for n in range(5)]
    for one in found:
        assert [pairs[n].label for n in one] == [1.0] * 3 + [0.0] * 6
        assert len({pairs[n].query_id for n in one}) == 1
        assert len(set(one)) == 9
        assert all(pairs[n].text.startswith("w" + pairs[n].query_id[1]) for n in one[3:6])


def test_draws_are_new_in_every_epoch_and_come_from_the_seed() -> None:
    pairs = make_pairs()
    assert members(make_examples(pairs), 0) == members(make_examples(pairs), 0)
    assert members(make_examples(pairs), 0) != members(make_examples(pairs), 1)
    assert members(make_examples(pairs), 0) != members(make_examples(pairs, seed=1), 0)


def test_short_lists_give_what_they_have() -> None:
    pairs = make_pairs(3, right=1, wrong=2)
    assert sorted(len(one) for one in members(make_examples(pairs), 0)) == [3, 3, 3]


def test_every_right_text_is_set_against_every_wrong_one_of_its_list() -> None:
    pairs = make_pairs(4, right=2, wrong=3)
    for loss, count in (("softmax", 2), ("hinge", 6)):
        examples = make_examples(pairs, loss=loss)
        for step in examples.steps(0):
            for shard_members in step:
                shard = examples.shard(shard_members)
                flat = np.concatenate(shard_members)
                assert shard.examples == count * len(shard_members)
                triples = set(zip(shard.positive.tolist(), shard.negative.tolist(), strict=True))
                assert len(triples) == 6 * len(shard_members)
                for good, bad in triples:
                    assert (pairs[flat[good]].label, pairs[flat[bad]].label) == (1, 0)
                    assert pairs[flat[good]].query_id == pairs[flat[bad]].query_id
                scores = torch.zeros(len(flat))
                expected = {"softmax": np.log(4), "hinge": 1.0}[loss]
                assert float(shard.loss(scores, examples.config)) / shard.examples == np.float32(expected)
