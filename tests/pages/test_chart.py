from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.pages.chart import apart, curve, ticks_of
from tests.drawing import examples


def drawn(points: list[tuple[int, dict[str, float]]], chosen: str = "a") -> str:
    """The wide picture of a learning curve."""
    names = dict.fromkeys(name for _, values in points for name in values)
    lines = {name: [(count, values[name]) for count, values in points if name in values] for name in names}
    return curve(lines, chosen=chosen, x_name="questions").partition("</svg>")[0]


def test_it_is_drawn_for_a_wide_page_and_for_a_phone() -> None:
    both = curve({"loss": [(1, 0.5), (2, 0.4)]}, chosen="loss", x_name="epochs", end=2, ring=2, caption='<"loss">')
    assert re.findall(r'<svg class="curve (\w+)"', both) == ["wide", "narrow"]
    assert both.count('aria-label="&lt;&quot;loss&quot;&gt;"') == both.count('class="ring"') == 2
    assert "epochs" in both


@pytest.mark.parametrize("end", [float("inf"), float("nan")])
def test_an_axis_without_an_end_is_not_drawn(end: float) -> None:
    assert curve({"loss": [(1, 0.5)]}, chosen="loss", x_name="epochs", end=end) == ""


def test_levels_are_lines_across_with_names_of_their_own() -> None:
    picture = curve({"RR": [(1, 0.5)]}, chosen="RR", x_name="epochs", end=1, levels={"RR": 0.4, "bm25": float("nan")})
    wide = picture.partition("</svg>")[0]
    assert wide.count('class="across"') == 1
    assert wide.count(">RR<") == 2
    assert "bm25" not in wide


@examples(100)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6))
def test_ticks_are_few_round_and_hold_the_values(values: list[float]) -> None:
    ticks = ticks_of(values)
    slack = 1e-3 * (ticks[-1] - ticks[0])
    assert 2 <= len(ticks) <= 8
    assert ticks[0] - slack <= min(values)
    assert max(values) <= ticks[-1] + slack
    if min(values) >= 0 and max(values) <= 1:
        assert ticks[0] >= 0
        assert ticks[-1] <= 1 + 1e-9


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_ticks_of_one_value_have_a_width(value: float) -> None:
    ticks = ticks_of([value])
    assert 0 <= ticks[0] <= value <= ticks[-1] <= 1
    assert ticks[0] < ticks[-1]


@examples(60)
@given(st.lists(st.floats(0, 300), min_size=1, max_size=15))
def test_labels_stand_apart_and_in_order(heights: list[float]) -> None:
    wanted = {str(n): height for n, height in enumerate(heights)}
    placed = apart(wanted, 0, 300)
    ordered = sorted(placed.values())
    assert all(b - a >= 17 - 1e-9 for a, b in pairwise(ordered))
    assert ordered[0] >= -1e-9
    assert ordered[-1] <= 300 + 1e-9
    assert [placed[name] for name in sorted(wanted, key=lambda name: wanted[name])] == ordered


def test_labels_with_room_stay_where_they_are() -> None:
    assert apart({"a": 10, "b": 200}, 0, 300) == {"a": 10, "b": 200}


def test_the_chosen_system_is_bold_and_drawn_last() -> None:
    picture = drawn([(100, {"a": 0.5, "b": 0.4}), (200, {"a": 0.7, "b": 0.5})])
    assert re.findall(r'<g class="(\w+)">', picture) == ["c0", "chosen"]
    points = [tuple(map(float, p.split(","))) for p in re.findall(r'points="([^"]*)"', picture)[1].split()]
    assert points[0][0] < points[1][0]
    assert points[0][1] > points[1][1]  # a better figure is higher up


def test_counts_are_doubled_by_equal_steps() -> None:
    picture = drawn([(n, {"a": 0.5}) for n in (100, 200, 400)])
    first, second, third = (float(p.split(",")[0]) for p in re.findall(r'points="([^"]*)"', picture)[0].split())
    assert second - first == pytest.approx(third - second, abs=0.2)


def test_labels_of_close_counts_are_left_out_and_the_last_is_named() -> None:
    picture = drawn([(n, {"a": 0.5}) for n in (1000, 9_990, 9_995, 10_000)])
    assert ">10,000<" in picture
    assert ">9,995<" not in picture
    assert ">1,000<" in picture


def test_one_point_and_gaps() -> None:
    assert "<circle" in drawn([(5, {"a": 0.5})])
    assert drawn([(5, {"a": 0.5, "b": float("nan")}), (9, {"b": 0.5})]).count("<circle") == 2
    assert drawn([]) == drawn([(5, {})]) == drawn([(5, {"a": float("inf")})]) == ""


def test_many_systems_make_it_higher() -> None:
    picture = drawn([(5, {f"system {n}": 0.5 for n in range(40)})])
    _, height = re.findall(r'viewBox="0 0 (\d+) (\d+)"', picture)[0]
    assert int(height) > 40 * 17
