from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from matchloom.basics.screen import printable
from matchloom.explanation import Cell, Explanation, cells, word_contributions
from matchloom.explanation.cells import (
    Scale,
    channel_contributions,
    choose_channel,
    decimal_places,
    worth_showing,
)
from matchloom.types import Signal, Trace
from tests.explanation.samples import lexical_like, tensor_like
from tests.refusing import refused


def test_cells_are_the_signals_in_words_strongest_first() -> None:
    assert cells(tensor_like()) == [
        Cell("passport", "passport", 2, 2, "tensor 1", 1.0, 0.5),
        Cell("renew", "new", 0, 1, "tensor 1", 0.8, 0.25),
        Cell("passport", "passport", 2, 2, "tensor 2", 0.9, -0.125),
        Cell("passport", "abroad", 2, 3, "tensor 2", 0.8, 0.0625),
    ]


def test_equal_shares_follow_position_not_the_order_given() -> None:
    one = lexical_like()
    other = Explanation(one.scorer, one.query, one.text, one.trace._replace(signals=one.trace.signals[::-1]))
    assert cells(one) == cells(other)
    assert [cell.text_position for cell in cells(one)] == [0, 2]


def test_word_shares_of_the_sample() -> None:
    assert word_contributions(tensor_like()) == ([0.25, 0.0, 0.4375], [0.0, 0.25, 0.375, 0.0625])


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 1), st.integers(-64, 64)), max_size=20),
    st.integers(-64, 64),
)
def test_shares_of_words_and_channels_add_up_to_the_score(rows: list[tuple[int, int, int, int]], rest: int) -> None:
    # Whole 64ths add without rounding, so that the sums must be equal.
    signals = [Signal(i, j, c, 1.0, contribution / 64) for i, j, c, contribution in rows]
    score = (sum(row[3] for row in rows) + rest) / 64
    grid = np.zeros((2, 4, 6), dtype=np.float32)
    explanation = Explanation("x", list("abcd"), list("uvwxyz"), Trace(score, signals, rest / 64, grid, ["p", "q"]))
    for contributions in (*word_contributions(explanation), channel_contributions(explanation)):
        assert sum(contributions) + rest / 64 == score


def test_the_channel_that_moved_the_score_most_is_chosen() -> None:
    explanation = tensor_like()
    assert channel_contributions(explanation) == [0.75, -0.0625]
    assert choose_channel(explanation) == 0
    assert choose_channel(explanation, "tensor 2") == 1
    with refused("unknown_name", "'tensor 9'", "mv_lstm", "1", "2"):
        choose_channel(explanation, "tensor 9")


def test_a_channel_that_pulled_down_most_is_chosen_too() -> None:
    trace = Trace(
        -2.0, [Signal(0, 0, 0, 1.0, 1.0), Signal(0, 0, 1, 1.0, -3.0)], 0.0, np.ones((2, 1, 1), np.float32), ["p", "q"]
    )
    assert choose_channel(Explanation("x", ["a"], ["b"], trace)) == 1


def test_worth_showing_keeps_words_that_took_part_then_their_neighbours() -> None:
    assert worth_showing(3, {}, 5) == [0, 1, 2]
    assert worth_showing(10, {}, 3) == [0, 1, 2]
    assert worth_showing(10, {7: 0.5}, 3) == [6, 7, 8]
    assert worth_showing(10, {7: 0.0, 2: 0.1}, 2) == [2, 7]
    assert worth_showing(10, {7: 0.5, 2: 0.1, 4: 0.3}, 2) == [4, 7]


def test_scale() -> None:
    mixed = Scale.of(np.array([-0.5, 2.0], dtype=np.float32))
    assert (mixed, mixed.strength(-1.0), mixed.strength(0.0), mixed.strength(2.0)) == (Scale(-2.0, 2.0), -0.5, 0.0, 1.0)
    positive = Scale.of(np.array([0.5, 1.0, np.inf], dtype=np.float32))
    assert (positive, positive.strength(0.5), positive.strength(0.75), positive.strength(1.0)) == (
        (0.5, 1.0),
        0,
        0.5,
        1,
    )
    negative = Scale.of(np.array([-4.0, -2.0], dtype=np.float32))
    assert (negative.strength(-2.0), negative.strength(-3.0), negative.strength(-4.0)) == (0.0, -0.5, -1.0)
    flat = Scale.of(np.array([3.0, 3.0], dtype=np.float32))
    assert flat.strength(3.0) == 1.0
    assert Scale.of(np.zeros(0, dtype=np.float32)) == (0.0, 0.0)


def test_printable_stops_what_could_drive_a_terminal_or_break_a_file() -> None:
    assert printable("a\x1b[2J\u202eb\ud800\x00") == "a\ufffd[2J\ufffdb\ufffd\ufffd"
    # Joiners and marks belong to words.
    assert printable("نمی\u200cخواهم é 护照") == "نمی\u200cخواهم é 护照"


@given(st.text(st.characters()))
def test_printable_words_can_be_written_and_keep_their_length(word: str) -> None:
    printable(word).encode("utf-8")
    assert len(printable(word)) == len(word)


def test_share_places_show_four_digits_of_the_largest() -> None:
    assert decimal_places(tensor_like()) == 4
    assert decimal_places(lexical_like()) == 2
