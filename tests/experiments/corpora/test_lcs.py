from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.corpora.lcs import is_lcs, lcs_length, lcs_pairs, lcs_path, lcs_table
from matchloom.types import MatchloomError

WORDS = st.text("ABC", max_size=6)


def subsequences(word: str) -> set[str]:
    return {"".join(some) for size in range(len(word) + 1) for some in combinations(word, size)}


@given(WORDS, WORDS)
def test_length_is_that_of_the_longest_by_trying_all(a: str, b: str) -> None:
    assert lcs_length(a, b) == max(len(both) for both in subsequences(a) & subsequences(b))


@given(WORDS, WORDS, st.lists(st.tuples(st.integers(-1, 6), st.integers(-1, 6)), max_size=4))
def test_matches_against_the_definition(a: str, b: str, matches: list[tuple[int, int]]) -> None:
    left, right = [i for i, _ in matches], [j for _, j in matches]
    spelled = (
        all(list(side) == sorted(set(side)) for side in (left, right))
        and all(0 <= i < len(a) and 0 <= j < len(b) for i, j in matches)
        and [a[i] for i in left] == [b[j] for j in right]
    )
    longest = max(len(both) for both in subsequences(a) & subsequences(b))
    assert is_lcs(a, b, matches) == (spelled and len(matches) == longest)


@given(WORDS, WORDS)
def test_the_table_holds_the_lengths_of_all_beginnings(a: str, b: str) -> None:
    expected = [[lcs_length(a[: i + 1], b[: j + 1]) for j in range(len(b))] for i in range(len(a))]
    assert lcs_table(a, b) == expected


@given(WORDS, WORDS)
def test_the_path_of_the_dynamic_programme_is_a_longest_one(a: str, b: str) -> None:
    path = lcs_path(a, b)
    assert all((k - i, m - j) in ((0, 1), (1, 0), (1, 1)) for (i, j), (k, m) in pairwise(path))
    # Where letters are equal it leaves along the diagonal: each is a match.
    taken = [(i, j) for i, j in path if a[i] == b[j]]
    assert is_lcs(a, b, taken)


def test_the_example_of_the_paper() -> None:
    assert lcs_length("ABCDE", "FACGD") == 3
    assert is_lcs("ABCDE", "FACGD", [(0, 1), (2, 2), (3, 4)])
    assert not is_lcs("ABCDE", "FACGD", [(0, 1), (2, 2)])  # common, but not the longest
    assert not is_lcs("ABCDE", "FACGD", [(0, 1), (2, 2), (4, 4)])  # E is not D
    assert not is_lcs("AB", "BA", [(0, 1), (1, 0)])  # crossing
    assert not is_lcs("A", "A", [(-1, 0)])  # Python would take -1 as the last
    assert is_lcs("A", "B", [])


def test_pairs() -> None:
    pairs = lcs_pairs(500, seed=3)
    assert pairs == lcs_pairs(500, seed=3)
    assert pairs != lcs_pairs(500, seed=4)
    words = [(pair.query.split(" "), pair.text.split(" ")) for pair in pairs]
    assert {len(a) for a, _ in words} == {len(b) for _, b in words} == set(range(1, 11))
    assert {letter for a, b in words for letter in a + b} == set("ABCDEFGHIJ")
    assert all(pair.label == lcs_length(a, b) for pair, (a, b) in zip(pairs, words, strict=True))
    assert len({(pair.query_id, pair.text_id) for pair in pairs}) == 500


def test_other_arguments() -> None:
    assert [pair[:3] for pair in lcs_pairs(2, max_length=1, alphabet="Z", seed=0)] == [("Z", "Z", 1.0)] * 2
    assert lcs_pairs(0, seed=0) == []
    with pytest.raises(MatchloomError, match="max_length 0"):
        lcs_pairs(1, max_length=0, seed=0)
