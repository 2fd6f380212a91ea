"""The kit by itself: tables, bars, highlights, documents."""

from __future__ import annotations

import re
from html import unescape

import pytest

from matchloom.pages.blocks import Cell, Column, Row, table
from matchloom.pages.contributions import Axis, highlight
from matchloom.pages.document import document, frame, without_styles
from matchloom.pages.markup import quoted, truncate

COLUMNS = [Column("system"), Column("P@1", "number"), Column("", "said")]


def test_cells_have_the_classes_of_their_columns() -> None:
    shown = table("Systems", COLUMNS, [Row(["bm25", "0.5", "fine"], "own"), Row([Cell("all", "wide", 2), ""])])
    assert shown.count("<tr ") == 3
    assert '<tr role="row" class="own"><th scope="row" role="rowheader" class="">bm25</th>' in shown
    assert '<td role="cell" class="number">0.5</td><td role="cell" class="said">fine</td>' in shown
    assert (
        '<th scope="row" role="rowheader" class="wide" colspan="2">all</th><td role="cell" class="said"></td>' in shown
    )
    assert "data-name" not in shown
    assert 'class="scroll-x"' in shown


def test_rows_that_become_blocks_name_their_figures() -> None:
    shown = table("Systems", COLUMNS, [Row(["bm25", "0.5", ""])], [Row(["", "1", "x"])], narrow="stack")
    assert re.findall(r'data-name="([^"]*)"', shown) == ["system", "P@1", "P@1", ""]
    assert shown.count("<tbody") == 2
    assert '<th role="cell" class=""></th>' in shown, "an empty cell heads nothing"


def test_columns_without_names_have_no_head() -> None:
    assert "<thead" not in table("Words", [Column(""), Column("", "fall")], [Row(["a", "b"])])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e308, -1.0, 0.0, 0.5, 3.0])
def test_bars_stay_on_their_axis(value: float) -> None:
    axis = Axis.of([value, 0.5, -0.25])
    drawn = axis.bar(0.0, value, "up") + axis.track(value, (0.1, 0.9))
    assert all(0 <= float(n) <= 100 for n in re.findall(r":(-?[\d.]+)%", drawn))
    assert not re.search("nan|inf", drawn)
    assert Axis.of([]).at(0.0) == 0


def test_words_are_marked_by_what_they_contributed() -> None:
    assert highlight("<b>", 3, None, largest=1, places=2) == '<span class="w" data-at="3">&lt;b&gt;</span>'
    marked = highlight("loom", 0, -0.5, largest=2, places=2)
    assert 'class="w down" data-at="0" style="--s:0.250" title="contribution −0.50"' in marked
    assert "--s:0.000" in highlight("loom", 0, 0.0, largest=0, places=2)


def test_texts_are_cut_where_it_is_seen() -> None:
    assert truncate("a\n b", 5) == "a b"
    assert truncate("abcdef", 3) == "abc …"
    assert quoted(" ", 3) == '<span class="note">(no text)</span>'


def test_a_document_lets_nothing_in() -> None:
    page = document("t", '<p style="--s:1">b</p>')
    assert "default-src 'none'; style-src 'unsafe-inline'\"" in page
    assert " style=" not in without_styles('<p style="--s:1">b</p>')
    assert unescape(frame(page, "t")).count("<!doctype html>") == 1
    assert "height: 42rem" in frame(page, "t", height=1000)
