"""Splits: what belongs together stays together; what is held out leaves the answers known."""

from __future__ import annotations

import random
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.data.identity import questions_of
from matchloom.data.splits import (
    asked_once,
    group_queries,
    group_texts,
    hold_out_questions,
    split_by_group,
    texts_alone,
)
from matchloom.types import MatchloomError, Pair


@given(
    groups=st.lists(st.sampled_from(["", "g1", "g2", "g3", "q1"]), min_size=1, max_size=40),
    seed=st.integers(0, 5),
    order=st.randoms(use_true_random=False),
)
def test_a_split_keeps_groups_together_and_loses_nothing(groups: list[str], seed: int, order: random.Random) -> None:
    pairs = [Pair(f"q{i}", f"t{i}", None, f"q{i // 2}", str(i), group) for i, group in enumerate(groups)]
    pairs += [Pair("a", "b", None, f"more{i}", "") for i in range(20)]
    split = split_by_group(pairs, seed=seed)
    assert sorted(pair for part in split for pair in part) == sorted(pairs)
    sides = [{("g", p.group) if p.group else ("q", p.query_id) for p in part} for part in split]
    assert not sides[0] & sides[1]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]
    shuffled = pairs.copy()
    order.shuffle(shuffled)
    assert [sorted(part) for part in split_by_group(shuffled, seed=seed)] == [sorted(part) for part in split]


def test_the_proportions_are_met_and_the_seed_matters() -> None:
    pairs = [Pair("q", "t", None, str(i)) for i in range(1_000)]
    split = split_by_group(pairs)
    assert [len(part) for part in split] == [800, 100, 100]
    assert [len(part) for part in split_by_group(pairs, parts=(0.5, 0.25))] == [667, 333]
    other = split_by_group(pairs, seed=1)
    common = len(set(split[1]) & set(other[1]))
    assert common < 30  # 10 expected of 100
    assert split_by_group(pairs) == split


def test_pairs_without_ids_are_split_by_query() -> None:
    pairs = [Pair(f"q{i // 4}", f"t{i}") for i in range(80)]
    parts = split_by_group(pairs)
    assert [len({pair.query for pair in part}) for part in parts] == [16, 2, 2]
    assert [len(part) for part in parts] == [64, 8, 8]


def test_splits_that_cannot_be() -> None:
    two = [Pair("a", "b", None, "1"), Pair("a", "b", None, "2")]
    with pytest.raises(MatchloomError, match=r"2 groups of pairs cannot be split \(8, 1, 1\) without an empty part"):
        split_by_group(two)
    with pytest.raises(MatchloomError, match=r"faq.tsv: 1 group of pairs cannot be split"):
        split_by_group(two[:1], source="faq.tsv")
    with pytest.raises(MatchloomError, match=r"parts \(8, 0\) must all be above zero"):
        split_by_group(two, parts=(8, 0))


def test_pairs_that_share_a_text_on_either_side_have_one_group() -> None:
    pairs = [Pair("a", "b"), Pair("c", " B "), Pair("b", "d"), *(Pair(f"q{n}", f"t{n}") for n in range(40))]
    groups = [pair.group for pair in group_texts(pairs)]
    assert len(set(groups[:3])) == 1
    assert len(set(groups)) == 41
    shuffled = Random(0).sample(pairs, len(pairs))
    named = {pair[:2]: pair.group for pair in group_texts(shuffled)}
    assert [named[pair[:2]] for pair in pairs] == groups


def test_where_all_hangs_together_queries_and_then_pairs_stay_together() -> None:
    one_text = [Pair(f"q{n // 2}", "everywhere" if n % 2 else f"t{n}") for n in range(60)]
    assert len({pair.group for pair in group_texts(one_text)}) == 30
    one_query = [Pair("always", f"t{n // 2}") for n in range(60)]
    assert len({pair.group for pair in group_texts(one_query)}) == 30


def test_a_query_with_two_ids_is_one_question() -> None:
    pairs = [Pair("Why?", "a", 1, "1"), Pair("why?", "b", 0, "2"), Pair("how?", "c", 0, "3")]
    first, second, third = (pair.group for pair in group_queries(pairs))
    assert first == second != third


def asked(*answers: int) -> list[Pair]:
    """Answers with so many questions each."""
    return [
        Pair(f"question {n} of {answer}", f"answer {answer}")
        for answer, times in enumerate(answers)
        for n in range(times)
    ]


@pytest.mark.parametrize(
    ("answers", "once"),
    [((4, 4), False), ((1,) * 8, True), ((2, 1, 1, 1, 1, 1), True), ((3, 1, 1, 1, 1, 1, 1, 1), False)],
)
def test_an_answer_keeps_a_question_where_three_in_ten_are_asked_again(answers: tuple[int, ...], once: bool) -> None:
    pairs = asked(*answers)
    train, held = hold_out_questions(pairs, 0.2, keep_answers=True)
    assert asked_once(pairs) == texts_alone(train) == once
    assert {pair.text for pair in train} == {pair.text for pair in pairs}
    if not once:
        assert {pair.text for pair in train if pair.query} == {pair.text for pair in pairs}
    kept, same = hold_out_questions(pairs, 0.2)  # as training does: the same questions
    assert same == held
    assert kept == [pair for pair in train if pair.query]


def test_every_answer_of_a_question_keeps_another() -> None:
    pairs = [*asked(3, 3, 1), Pair("both?", "answer 0"), Pair("both?", "answer 2")]
    for seed in range(20):
        kept, _ = hold_out_questions(pairs, 0.5, seed=seed)
        assert {pair.text for pair in kept} == {"answer 0", "answer 1", "answer 2"}


def test_folds_have_no_question_in_common_and_at_most_so_many_are_held_out() -> None:
    pairs = asked(6, 6, 6)
    folds = [questions_of(hold_out_questions(pairs, 0.2, fold_number=n)[1]).keys() for n in range(5)]
    assert len({question for own in folds for question in own}) == sum(map(len, folds)) >= 15
    assert len(hold_out_questions(pairs, 0.5, most=4)[1]) == 4
    assert not any(pair.label == 0 for part in hold_out_questions([*pairs, Pair("q", "a", 0)], 0.5) for pair in part)
