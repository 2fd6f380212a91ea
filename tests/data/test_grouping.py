"""Grouped lists: nothing but the query tells the answer."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.data.grouping import grouped_lists
from matchloom.data.splits import split_by_group
from matchloom.types import MatchloomError, Pair
from tests.drawing import examples

TOPICS = ["wool yarn", "wood frame", "shell pipe", "stock bond", "rain wind", "salt sugar"]


def corpus(size: int, seed: int = 0) -> list[Pair]:
    draw = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(30)]
    return [
        Pair(f"question {i}", f"{TOPICS[i % 6]} {' '.join(draw.choice(words, size=draw.integers(3, 9)))} only{i}", 1.0)
        for i in range(size)
    ]


def by_query(pairs: list[Pair]) -> dict[str, list[Pair]]:
    lists = defaultdict(list)
    for pair in pairs:
        lists[pair.query_id].append(pair)
    return lists


def precision_at_1(pairs: list[Pair], score: Callable[[str], object]) -> Fraction:
    """The mean over queries, exactly; where several texts tie for the first place, the mean over them."""
    lists = by_query(pairs)
    total = Fraction(0)
    for candidates in lists.values():
        best = max(score(pair.text) for pair in candidates)
        first = [pair.label for pair in candidates if score(pair.text) == best]
        total += Fraction(int(sum(first)), len(first))
    return total / len(lists)


@pytest.mark.parametrize("size", [2, 3, 5, 7])
def test_a_blind_scorer_gets_exactly_chance(size: int) -> None:
    lists = grouped_lists(corpus(101), size=size)
    assert len(lists) == 101 // size * size * size
    blind: list[Callable[[str], object]] = [
        len,
        lambda text: -len(text),
        lambda text: text,
        lambda text: 0,
        lambda text: text.count("w1"),
    ]
    for score in blind:
        assert precision_at_1(lists, score) == Fraction(1, size)
    assert precision_at_1(lists, {pair.text: i for i, pair in enumerate(lists)}.__getitem__) == Fraction(1, size)
    for part in split_by_group(lists, parts=(3, 1, 1), seed=2):  # and so it stays on every side of a split
        assert precision_at_1(part, len) == Fraction(1, size)


def test_each_text_is_the_answer_once_and_a_distractor_as_often_as_any_other() -> None:
    pairs = corpus(62)
    lists = grouped_lists(pairs, size=5)
    right = Counter(pair.text for pair in lists if pair.label == 1)
    wrong = Counter(pair.text for pair in lists if pair.label == 0)
    assert set(right.values()) == {1}
    assert set(wrong.values()) == {4}
    assert set(right) == set(wrong)
    assert {(p.query, p.text) for p in lists if p.label == 1} <= {(p.query, p.text) for p in pairs}
    assert sum(pair.label == 1 for pair in lists) == 60  # and two were left over


def test_a_list_and_its_group_hold_together() -> None:
    lists = grouped_lists(corpus(60))
    for candidates in by_query(lists).values():
        assert len(candidates) == 5
        assert len({pair.group for pair in candidates}) == 1
        assert len({pair.text_id for pair in candidates}) == 5
    groups = defaultdict(set)
    for pair in lists:
        groups[pair.group].add(pair.text)
    assert len(groups) == 12
    assert sum(len(texts) for texts in groups.values()) == len({pair.text for pair in lists}) == 60


def test_groups_are_neighbours() -> None:
    # Six topics that share no word, 80 texts each. A group is drawn from the 40 nearest that are free, so as long as a
    # topic has that many left (here for 20 groups) it is of one topic; drawn blindly hardly one would be.
    draw = np.random.default_rng(0)
    pairs = [
        Pair(f"question {i}", f"topic{i % 6} only{i} " + " ".join(f"t{i % 6}w{j}" for j in draw.choice(8, size=5)))
        for i in range(480)
    ]
    topics: dict[str, set[str]] = defaultdict(set)
    for pair in grouped_lists(pairs)[: 20 * 25]:
        topics[pair.group].add(pair.text[:6])
    assert len(topics) == 20
    assert all(len(found) == 1 for found in topics.values())
    assert len(set.union(*topics.values())) > 3


def test_the_answer_has_no_fixed_place() -> None:
    places = Counter(
        [pair.label for pair in candidates].index(1.0) for candidates in by_query(grouped_lists(corpus(100))).values()
    )
    assert places == dict.fromkeys(range(5), 20)


def test_the_order_of_pairs_does_not_show_and_the_seed_does() -> None:
    pairs = corpus(61)
    once = grouped_lists(pairs, seed=4)
    random.Random(0).shuffle(pairs)
    assert grouped_lists(pairs, seed=4) == once
    assert grouped_lists(pairs, seed=5) != once


few = st.sampled_from(["a", "A ", "a b", "A  B", "b", "c", "d", "e", "f g"])


@examples(200)
@given(pairs=st.lists(st.builds(Pair, few, few, st.none(), st.sampled_from(["", "", "q1"])), min_size=1, max_size=9))
def test_no_right_text_stands_as_wrong(pairs: list[Pair]) -> None:
    def same(text: str) -> str:
        return " ".join(text.lower().split())

    pairs = pairs + [Pair(f"query {i}", f"text {i}") for i in range(4)]
    true = {(same(pair.query), same(pair.text)) for pair in pairs}
    lists = grouped_lists(pairs, size=2)
    for pair in lists:
        assert ((same(pair.query), same(pair.text)) in true) == (pair.label == 1)
    assert all(len(candidates) == 2 for candidates in by_query(lists).values())
    assert len({same(pair.query) for pair in lists}) == len(by_query(lists))


def test_two_queries_that_share_an_answer_never_share_a_list() -> None:
    pairs = [Pair(q, t) for q in ("q1", "q2") for t in ("same words", "same words too")]
    pairs += [Pair("q3", "other words"), Pair("q4", "more words")]
    for seed in range(10):
        lists = by_query(grouped_lists(pairs, size=2, seed=seed))
        assert len(lists) == 4
        assert all(sum("same" in pair.text for pair in candidates) == 1 for candidates in lists.values())


def test_ids_are_kept_or_made_from_content() -> None:
    given_ids = [pair._replace(query_id=f"q{i}", group="old") for i, pair in enumerate(corpus(10))]
    assert set(by_query(grouped_lists(given_ids))) == {f"q{i}" for i in range(10)}
    assert len(by_query(grouped_lists(corpus(10)))) == 10
    assert "old" not in {pair.group for pair in grouped_lists(given_ids)}


def test_wrong_arguments() -> None:
    with pytest.raises(MatchloomError, match="found 4 different pairs, expected 5 or more for lists of 5"):
        grouped_lists([*corpus(4), *corpus(4)])
    with pytest.raises(MatchloomError, match="size 1 makes no lists"):
        grouped_lists(corpus(9), size=1)
    with pytest.raises(MatchloomError, match=r"has a pair with label 0\.0; give positive pairs only"):
        grouped_lists([Pair("a", "b", 0.0)])
