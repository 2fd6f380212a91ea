from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from matchloom.explanation import Explanation
from matchloom.types import Signal, Trace
from tests.drawing import examples
from tests.explanation.samples import lexical_like, of_words, path_like, tensor_like
from tests.refusing import refused


def plain(explanation: Explanation, width: int = 100, channel: str | None = None, top: int = 8) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(explanation.to_terminal(channel=channel, top=top))
    return out.getvalue()


def long(query: int, text: int) -> Explanation:
    """Shares only near the end, so that a cut from the front would lose them."""
    grid = np.random.default_rng(0).normal(size=(4, query, text)).astype(np.float32)
    signals = [Signal(query - 1, text - 2 - c, c, float(grid[c, query - 1, text - 2 - c]), 0.5) for c in range(4)]
    words = [f"{'long' * (i % 4)}word{i}" for i in range(max(query, text))]
    return Explanation(
        "mv_lstm", words[:query], words[:text], Trace(2.25, signals, 0.25, grid, [f"tensor {c}" for c in range(4)])
    )


def test_without_colour_the_marks_say_it() -> None:
    lines = plain(tensor_like()).splitlines()
    assert lines[0] == "mv_lstm  score 0.5000  =  +0.6875 signals  -0.1875 residual"
    # Shares against the largest, passport's .4375: renew .57, new .57, passport .86, abroad .14.
    assert lines[2].split() == ["query", "renew++", "my", "passport+++"]
    assert lines[3].split() == ["text", "a", "new++", "passport+++", "abroad+"]


def test_the_table_lists_signals_in_order_and_adds_up() -> None:
    text = plain(tensor_like(), top=2)
    table = [line.split() for line in text.split("value\n")[1].splitlines()[:5]]
    assert table[0] == ["+0.5000", "█" * 20, "passport", "3", "passport", "3", "tensor", "1", "1.000"]
    assert table[1] == ["+0.2500", "█" * 10, "renew", "1", "new", "2", "tensor", "1", "0.800"]
    assert table[2] == ["-0.0625", "2", "more"]
    assert table[3] == ["-0.1875", "residual"]
    assert table[4] == ["0.5000", "score"]
    assert sum(float(row[0]) for row in table[:4]) == float(table[4][0])


def test_parts_stand_in_the_sum_and_in_the_table() -> None:
    text = plain(path_like())
    assert text.splitlines()[0] == "match_srnn  score 0.7500  =  +0.6250 signals  -0.1250 components  +0.2500 residual"
    table = [line.split() for line in text.split("value\n")[1].splitlines()[:8]]
    assert [row[0] for row in table[:6]] == ["+0.5000", "+0.2500", "-0.2500", "-0.1250", "+0.1250", "+0.0000"]
    assert table[2] == ["-0.2500", "▒" * 10, "new", "number", "1.000"]
    assert table[4] == ["+0.1250", "█" * 5, "shared", "words", "0.500"]
    assert table[6] == ["+0.2500", "residual"]
    assert sum(float(row[0]) for row in table[:7]) == float(table[7][0])


def test_a_path_is_drawn_step_by_step() -> None:
    lines = plain(path_like()).splitlines()
    assert any(line.endswith("● ─ │ ╲ the path") for line in lines)
    rows = [line[15:].rstrip() for line in lines[-3:]]
    assert rows[0].startswith("● ──")
    assert rows[1][4:6] == "╲ "  # reached along the diagonal
    assert rows[2][4:6] == "│ "


def test_what_speaks_against_the_match_looks_different() -> None:
    text = plain(tensor_like())
    assert "-0.1250  ▒▒▒▒▒" in text
    one = tensor_like()
    trace = Trace(-1.0, [Signal(0, 0, 0, 0.1, -1.0)], 0.0, one.trace.grid, one.trace.channels)
    assert "renew---" in plain(Explanation("x", one.query, one.text, trace))


def test_the_map_of_the_strongest_channel() -> None:
    text = plain(tensor_like())
    head, rows = text.split("[] took part\n")
    assert head.splitlines()[-1] == "map of tensor 1, contribution +0.7500; -1.000 #=-.░▒▓█ 1.000; "
    lines = rows.splitlines()
    # The text words stand upright on their columns.
    letters = [line.ljust(23)[15:] for line in lines[:-3]]
    assert ["".join(line[2 * j] for line in letters).strip() for j in range(4)] == ["a", "new", "passport", "abroad"]
    assert [line.rstrip() for line in lines[-3:]] == [
        "renew          ░░[]░░--",
        "my               ░░  ░░",
        "passport       ░░░░[]░░",
    ]


def test_another_channel_can_be_named() -> None:
    assert "map of tensor 2, contribution -0.0625; 0.6000 ░▒▓█ 0.9000; [] took part" in plain(
        tensor_like(), channel="tensor 2"
    )
    with refused("unknown_name", "choose", "1", "2"):
        plain(tensor_like(), channel="tensor 3")


def test_one_channel_needs_no_channel_column() -> None:
    assert "channel" not in plain(lexical_like())
    assert "channel" in plain(tensor_like())


@pytest.mark.parametrize("width", [60, 100, 180])
@pytest.mark.parametrize("make", [tensor_like, lexical_like, lambda: long(9, 30), lambda: long(200, 200)])
def test_it_fits(width: int, make: type[Explanation]) -> None:
    text = plain(make(), width)
    assert max(map(cell_len, text.splitlines())) <= min(width, 100)


def test_long_texts_are_cut_and_it_says_so() -> None:
    text = plain(long(200, 200))
    assert "(50 of 200 words not shown)" in text
    assert "Not in the map: 176 of 200 query words and 158 of 200 text words" in text
    # The words that took part are kept, wherever they stand.
    assert "word199+++" in text.replace("long", "")
    assert text.count("[]") == 1 + 1
    narrow = plain(long(9, 30), 60)
    assert "Not in the map: 8 of 30 text words" in narrow
    assert "query words" not in narrow


def test_colour_replaces_the_marks_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> str:
        out = io.StringIO()
        Console(file=out, width=100, force_terminal=True, color_system="truecolor").print(tensor_like())
        return out.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = shown()
    assert "48;2;77;163;255mpassport" in coloured
    assert "passport+" not in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert "48;2" not in shown()
    assert "passport+++" in shown()


def test_no_words() -> None:
    text = plain(of_words([], ["a"]))
    assert "(no words)" in text
    assert "No map: one side has no words." in text


def test_wide_words_keep_the_columns() -> None:
    lines = plain(of_words(["护照", "b"], ["海外", "b"])).splitlines()
    assert [line.rstrip() for line in lines[-4:]] == [
        " " * 15 + "海",
        " " * 15 + "外b",
        "护照" + " " * 11 + "[]██",
        "b" + " " * 14 + "██[]",
    ]


@examples(50)
@given(st.lists(st.text(st.characters(), min_size=1), min_size=1, max_size=4), st.sampled_from([60, 100]))
def test_no_word_drives_the_terminal(words: list[str], width: int) -> None:
    text = plain(of_words(words, words[::-1], channel=words[0]), width)
    text.encode("utf-8")
    assert not any((char < " " and char != "\n") or "\x7f" <= char <= "\x9f" or char == "\u202e" for char in text)


def test_where_most_cells_took_part_the_map_is_not_hidden_by_marks() -> None:
    one = tensor_like()
    grid = one.trace.grid[:1]
    signals = [Signal(i, j, 0, float(grid[0, i, j]), 0.125) for i in range(3) for j in range(4) if (i, j) != (0, 0)]
    whole = Explanation("m2s_net", one.query, one.text, Trace(1.375, signals, 0.0, grid, ["metric"]))
    text = plain(whole)
    assert "most cells took part" in text
    assert "[]" not in text
    assert "██" in text.splitlines()[-1]  # passport meets passport
    few = Explanation("m2s_net", one.query, one.text, Trace(0.75, signals[:6], 0.0, grid, ["metric"]))
    assert "[] took part" in plain(few)
