from __future__ import annotations

from random import Random

from matchloom.fitting.joined import group_queries, group_texts, joined
from matchloom.types import Pair


def test_rows_that_share_keys_by_way_of_others_are_one() -> None:
    assert joined([("a", "b"), ("c", "d"), ("e",), ("d", "a")]) == [0, 0, 2, 0]
    assert joined([]) == []


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
