from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from matchloom.data.identity import components, digest, same_answers, with_ids
from matchloom.types import Pair

PAIRS = st.lists(
    st.tuples(
        st.sampled_from(["loom", "warp"]),
        st.sampled_from(["", "a", "a b", "é"]),
        st.sampled_from([None, 0.0, 1.0]),
        st.sampled_from(["", "q1"]),
        st.just(""),
        st.sampled_from(["", "g"]),
    ).map(Pair._make),
    max_size=30,
)


def test_digest_parts_do_not_run_together() -> None:
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("abc", "")}) == 4
    assert digest("\ud800")  # half a surrogate pair, as broken files hold, is a text too


def test_ids_that_are_there_stay() -> None:
    pair = Pair("warp", "weft", 1.0, "q7", "d9", "g")
    assert list(with_ids([pair])) == [pair]


def test_pairs_of_a_query_share_its_id_and_nothing_else() -> None:
    a, b, c = with_ids([Pair("warp", "weft"), Pair("warp", "wool"), Pair("silk", "weft")])
    assert a.query_id == b.query_id != c.query_id
    assert len({a.text_id, b.text_id, c.text_id}) == 3


def test_label_of_one_is_the_same_as_int_or_float() -> None:
    assert list(with_ids([Pair("q", "t", 1)])) == list(with_ids([Pair("q", "t", 1.0)]))


def test_it_streams() -> None:
    def endless() -> object:
        while True:
            yield Pair("q", "t")

    stream = with_ids(endless())  # type: ignore[arg-type]
    assert next(stream).text_id != next(stream).text_id


@given(PAIRS, st.integers())
def test_order_of_lines_never_shows(pairs: list[Pair], seed: int) -> None:
    shuffled = random.Random(seed).sample(pairs, len(pairs))
    assert Counter(with_ids(pairs)) == Counter(with_ids(shuffled))


@given(PAIRS)
def test_ids_are_filled_and_unique_within_a_list(pairs: list[Pair]) -> None:
    done = list(with_ids(pairs))
    assert [pair[:3] for pair in done] == [pair[:3] for pair in pairs]
    assert all(pair.query_id and pair.text_id for pair in done)
    assert len({(pair.query_id, pair.text_id) for pair in done}) == len(done)


def test_ids_follow_neither_order_nor_label() -> None:
    # Positives first, as in public files: sorted by id they must be spread like any random draw.
    pairs = with_ids(Pair("q", f"text {i}", float(i < 500)) for i in range(1000))
    ranks = [rank for rank, pair in enumerate(sorted(pairs, key=lambda pair: pair.text_id)) if pair.label]
    assert 450 < sum(ranks) / len(ranks) < 550


def test_rows_that_share_keys_by_way_of_others_are_one() -> None:
    assert components([("a", "b"), ("c", "d"), ("e",), ("d", "a")]) == [0, 0, 2, 0]
    assert components([]) == []


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=3), max_size=30),
    st.randoms(use_true_random=False),
)
def test_components_are_named_by_their_first_row_and_independent_of_order(
    rows: list[list[int]], order: random.Random
) -> None:
    found = components(rows)
    assert all(found[name] == name <= row for row, name in enumerate(found))
    places = list(range(len(rows)))
    order.shuffle(places)
    other = components(rows[place] for place in places)
    assert {frozenset(p for p, name in zip(places, other, strict=True) if name == one) for one in other} == {
        frozenset(p for p, name in enumerate(found) if name == one) for one in found
    }


def test_answers_are_told_by_id_and_by_text() -> None:
    pairs = [Pair("a", "X  y", text_id="1"), Pair("b", "x Y"), Pair("c", "z", text_id="1"), Pair("d", "w")]
    assert len(set(same_answers(pairs)[:3])) == 1
    assert len(set(same_answers(pairs))) == 2
