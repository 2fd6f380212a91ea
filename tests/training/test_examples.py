"""What a step looks at: triples of one list, every positive once an epoch, draws from seed and epoch alone."""

from __future__ import annotations

from collections import Counter

import pytest

from matchloom.data.reader import Reader
from matchloom.data.tokenized import deduplicate
from matchloom.matcher import ReadPairs
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.training.config import TrainConfig
from matchloom.training.examples import TrainingExamples, group_pairs
from matchloom.types import MatchloomError, Pair
from tests.training.making import colour_pairs


def make_examples(pairs: list[Pair], **config: int | str) -> TrainingExamples:
    chosen = TrainConfig(**config)
    groups = group_pairs(pairs, chosen)
    (left, left_rows), (right, right_rows) = (deduplicate([pair[side] for pair in pairs]) for side in (0, 1))
    reader = Reader(Tokenizer("whitespace"), Vocab.build([text.split() for text in left + right]))
    read = ReadPairs(reader.read(left), reader.read(right), left_rows, right_rows, None)
    return TrainingExamples(groups, read, chosen, shards=chosen.workers)


def epoch(examples: TrainingExamples, number: int) -> list[list[list[list[int]]]]:
    return [[[members.tolist() for members in shard] for shard in step] for step in examples.steps(number)]


def test_hinge_units_pair_each_positive_with_negatives_of_its_own_list() -> None:
    pairs = colour_pairs(30, 6)
    examples = make_examples(pairs, batch=16, negatives=3, workers=2)
    seen: Counter[str] = Counter()
    for step in epoch(examples, 0):
        assert len(step) <= 2
        for shard in step:
            for positive, *negatives in shard:
                assert pairs[positive].label == 1
                assert len(set(negatives)) == 3
                assert all(pairs[n].label == 0 and pairs[n].query_id == pairs[positive].query_id for n in negatives)
                seen[pairs[positive].query_id] += 1
    assert seen == Counter({f"q{n}": 1 for n in range(30)})


def test_triples_of_a_shard_point_at_the_right_pairs() -> None:
    pairs = colour_pairs(6, 4)
    examples = make_examples(pairs, batch=6, negatives=2, workers=1)
    for step in examples.steps(3):
        for members in step:
            shard = examples.shard(members)
            flat = [n for example in members for n in example.tolist()]
            assert shard.positive is not None
            assert shard.negative is not None
            for positive, negative in zip(shard.positive.tolist(), shard.negative.tolist(), strict=True):
                good, bad = pairs[flat[positive]], pairs[flat[negative]]
                assert (good.label, bad.label) == (1, 0)
                assert good.query_id == bad.query_id
                row = shard.batch.right.words[shard.batch.right_rows[negative]]
                assert int(shard.batch.right.lengths[shard.batch.right_rows[negative]]) == len(bad.text.split())
                assert row[0] > 0


def test_an_epoch_depends_on_seed_and_number_only() -> None:
    pairs = colour_pairs(20, 6)
    assert epoch(make_examples(pairs, negatives=2), 4) == epoch(make_examples(pairs, negatives=2), 4)
    assert epoch(make_examples(pairs, negatives=2), 4) != epoch(make_examples(pairs, negatives=2), 5)
    assert epoch(make_examples(pairs, negatives=2), 4) != epoch(make_examples(pairs, negatives=2, seed=1), 4)


def test_pointwise_units_are_single_pairs() -> None:
    pairs = colour_pairs(10, 3)
    examples = make_examples(pairs, loss="cross_entropy", batch=7, workers=2)
    flat = [n for step in epoch(examples, 0) for shard in step for example in shard for n in example]
    assert sorted(flat) == list(range(30))
    shard = examples.shard(next(iter(examples.steps(0)))[0])
    assert shard.positive is None
    assert shard.labels is not None


def test_batches_hold_like_lengths_unless_they_must_not() -> None:
    pairs = [Pair(f"query {n}", " ".join(["word"] * (1 + 7 * n % 30)), n % 2) for n in range(300)]
    examples = make_examples(pairs, loss="cross_entropy", batch=10, workers=1)

    def spread() -> float:
        lengths = [[len(pairs[example[0]].text.split()) for example in step[0]] for step in epoch(examples, 0)]
        return sum(max(batch) - min(batch) for batch in lengths) / len(lengths)

    assert spread() <= 2  # 300 texts of 30 lengths, all in one pool
    examples.by_length = False
    assert spread() > 15


def test_lists_without_both_labels_are_left_out_and_counted() -> None:
    pairs = [*colour_pairs(5, 3), Pair("only", "positive", 1.0, "p", "1"), Pair("only", "negative", 0.0, "n", "1")]
    examples = make_examples(pairs)
    assert len(examples) == 5
    assert examples.groups.left_out == 2


@pytest.mark.parametrize(
    ("pairs", "config", "match"),
    [
        (
            [Pair("a", "b", 1.0, "1", "1"), *(Pair(f"q{n}", "c", 0.0, str(n), "2") for n in range(2, 102))],
            {},
            r"no query of the 101 has both .* \(1 have positives, 100 have negatives\); train independent pairs",
        ),
        ([Pair("a", "b", 0.0, "1", "1")], {}, r"\(0 have positives, 1 have negatives\); label positives 1"),
        ([Pair("a", "b", None, "1", "1")], {}, "1 of 1 training pairs have no label"),
        ([Pair("a", "b", 1.0)] * 3, {"loss": "squared_error"}, "all training labels are equal"),
        ([Pair("a", "b", 2.0), Pair("a", "c", 0.0)], {"loss": "cross_entropy"}, "needs labels 0 and 1"),
    ],
)
def test_data_that_cannot_be_learnt_from(pairs: list[Pair], config: dict, match: str) -> None:
    with pytest.raises(MatchloomError, match=match):
        group_pairs(pairs, TrainConfig(**config))


def test_wrong_settings_are_named() -> None:
    for setting, match in (
        ({"loss": "log"}, "loss 'log' is unknown; choose one of hinge"),
        ({"optimizer": "sgd"}, "optimizer 'sgd' is unknown; choose one of adagrad"),
        ({"batch": 0}, "batch must be at least 1, found 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"clip": -1.0}, "clip must not be below 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be above 0, found nan"),
    ):
        with pytest.raises(MatchloomError, match=match):
            TrainConfig(**setting)
