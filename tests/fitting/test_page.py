from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.data.kinds import LISTS, PAIRS
from matchloom.evaluation.significance import interval
from matchloom.fitting.page import fragment, render
from matchloom.fitting.report import Asked, Confusion, FitReport, Promise, SystemFigures
from tests.drawing import examples
from tests.explanation.test_html import NASTY
from tests.fitting.samples import bare_report, small_report

VOID = {"meta", "link", "br", "img", "input"}
# What the page's elements may stand directly in, where browsers would otherwise move or close them.
PARENTS = {
    "tr": {"thead", "tbody"},
    "td": {"tr"},
    "th": {"tr"},
    "tbody": {"table"},
    "dt": {"dl"},
    "dd": {"dl"},
    "li": {"ul"},
    "summary": {"details"},
}
BLOCKS = {"p", "div", "dl", "table", "section", "article", "h1", "h2", "h3", "ul", "pre", "details", "header"}


class Page(HTMLParser):
    """The tags of a page in order, its text by the nearest tag, and whether they are nested as they must be."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of <{tag}> stands twice"
        if tag in PARENTS:
            assert self._open[-1] in PARENTS[tag]
        if tag in BLOCKS:
            assert not {"p", "h1", "h2", "h3", "bdi", "span"} & set(self._open), f"<{tag}> within {self._open}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.said.append((self._open[-1] if self._open else "", data))

    def texts(self, tag: str) -> list[str]:
        return [data for name, data in self.said if name == tag]

    def classes(self, name: str) -> int:
        return sum(name in (attributes.get("class") or "").split() for _, attributes in self.tags)


def test_everything_is_on_the_page() -> None:
    page = Page(render(small_report()))
    assert page.texts("title") == ["matchloom fit: 8 of 10 questions get the right answer first."]
    assert page.texts("h1") == ["8 of 10 questions get the right answer first."]
    assert page.texts("h2") == [
        "How good, on 100 test questions",
        "Would more questions help?",
        "Answers that are confused",
        "Where it is wrong",
        "Where it is right",
        "Notes",
        "What next",
    ]
    assert "100 held-out test questions, measured once" in page.texts("dd")
    rule = "the most complete system, unless another is significantly better"
    assert f"1 development question, by P@1: {rule}" in page.texts("dd")
    assert page.texts("li") == ["14 questions stand twice in the file."]
    assert page.texts("code")[0] == 'matchloom search DIR "question"'
    assert "how often a right answer is among the first 3" in page.texts("dd")


def test_the_table_of_systems() -> None:
    source = render(small_report())
    page = Page(source)
    assert page.classes("is-chosen") == 1
    assert [text for text in page.texts("span") if text in ("chosen", "baseline")] == ["baseline", "baseline", "chosen"]
    assert "it learnt nothing" in page.texts("td")
    assert {"< 0.001 ", "0.310 ", "1.2 s", "3 min", "24 s"} <= set(page.texts("td"))
    assert {"clearly lower", "may be chance"} <= set(page.texts("small"))
    assert 'style="--from:0.00%;--size:80.00%"' in source
    low, high = interval(0.8, 100)
    assert f"{low:.3f} to {high:.3f}" in page.texts("small")


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    for table in re.findall(r"<thead.*?</table>", render(small_report()), re.DOTALL):
        widths = {
            sum(int(n or 1) for n in re.findall(r'<t[hd]\b(?:[^>]*colspan="(\d+)")?', row))
            for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)
        }
        assert len(widths) == 1


def test_a_question_says_what_was_right_and_what_came_first() -> None:
    page = Page(render(small_report()))
    assert [t for t in page.texts("span") if t.startswith("right")] == [
        "right answer at rank 2",
        "right answer not found",
        "right",
    ]
    assert page.texts("b") == ["+0.400", "−0.100", "+0.900"]
    assert "Also right" not in page.texts("dt")
    several = Asked("q", "another right one", "the first", 1, 1.0)
    assert "Also right" in Page(render(replace(small_report(), best=[several]))).texts("dt")


def test_the_words_of_each_kind() -> None:
    pairs = render(replace(small_report(), kind=PAIRS, measure="accuracy", measures=("accuracy",)))
    assert "100 test pairs" in pairs
    assert "test question" not in pairs
    assert "Came first" not in pairs
    assert "rank 2" not in pairs
    for other in (pairs, render(replace(small_report(), kind=LISTS))):
        assert "matchloom search" not in other
        assert "matchloom rank DIR" in other


def test_intervals_only_where_they_are_known() -> None:
    def drawn(**changes: object) -> int:
        return render(replace(small_report(), **changes)).count("<u ")  # type: ignore[arg-type]

    assert drawn() == 3
    assert drawn(tested=0) == 0
    assert drawn(measure="RR") == 3
    assert "at its widest" in render(replace(small_report(), measure="RR"))
    assert "at its widest" not in render(small_report())
    assert drawn(kind=PAIRS, measure="RR") == 0  # of pairs only accuracy is a mean of single values


@pytest.mark.parametrize(("mean", "count"), [(0.0, 1), (1.0, 1), (0.5, 10), (0.793, 796), (1.0, 10**9)])
def test_an_interval_holds_its_mean_and_stays_within_0_and_1(mean: float, count: int) -> None:
    low, high = interval(mean, count)
    assert 0 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= 1
    # Wilson's definition: at either end the mean lies 1.96 standard errors off.
    for end in (low, high):
        assert end in (0, 1) or abs(mean - end) == pytest.approx(
            1.959964 * math.sqrt(end * (1 - end) / count), abs=1e-7
        )


def test_empty_parts_leave_nothing_behind() -> None:
    page = Page(render(bare_report()))
    assert page.texts("h1") == ["answer_ranker was chosen."]
    assert page.texts("h2") == ["What next"]
    assert {"table", "svg", "ul"}.isdisjoint(tag for tag, _ in page.tags)
    blank = Asked("", " ", "\n", None, 0.0, [("", 0.0)])
    assert Page(render(replace(bare_report(), worst=[blank]))).texts("span").count("(no text)") == 3


def test_long_texts_and_lists_are_cut() -> None:
    long = "words and more " * 100_000
    asked = Asked(long, long, long, 3, 1.0, [(long, 1.0)] * 100)
    report = replace(
        small_report(),
        about=long,
        verdict=[long, long],
        notes=[long],
        worst=[asked] * 30,
        confusions=[Confusion(long, "x" * 10**6, 2, long)] * 30,
        systems=[SystemFigures(long, long, {}, {"P@1": 0.5}), SystemFigures("b", long, error=long)],
        curve=[(10, {long: 0.5})],
    )
    source = render(report)
    Page(source)
    assert len(source) < 150_000
    assert source.count("(20 more are in fit.json)") == 1
    assert source.count("(10 more are in fit.json)") == 1
    assert " …</h1>" in source


def test_line_breaks_become_spaces() -> None:
    assert "one two" in Page(render(replace(small_report(), verdict=["one\r\n\ttwo"]))).texts("h1")


EXTREME = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.0, 1.0, -3.5, 123456789.0]


@pytest.mark.parametrize("value", EXTREME)
@pytest.mark.parametrize("other", [math.nan, 0.0, 1.0, -1e308])
def test_extreme_numbers(value: float, other: float) -> None:
    report = replace(
        small_report(),
        systems=[
            SystemFigures("a", "", {}, {"P@1": value, "RR": value}, value, value),
            SystemFigures("answer_ranker", "", {}, {"P@1": other}, None, other),
        ],
        minutes=value,
        curve=[(0, {"a": value, "b": other}), (0, {"a": other}), (10**12, {"a": value})],
        worst=[Asked("q", "r", "f", 10**9, value, [("w", value), ("v", other)])],
    )
    source = render(report)
    Page(source)
    for style in re.findall(r'style="([^"]*)"', source):
        assert all(0 <= float(n) <= 100 for n in re.findall(r":(-?[\d.]+)%", style))
        assert "nan" not in style
        assert "inf" not in style
    for picture in re.findall(r"<svg.*?</svg>", source, re.DOTALL):
        assert not re.search(r"nan|inf|e\+", picture)


def test_the_page_needs_nothing_from_outside() -> None:
    source = render(small_report())
    page = Page(source)
    tags = {tag for tag, _ in page.tags}
    assert tags.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "base", "form"})
    assert not any(n in a for _, a in page.tags for n in ("src", "href", "srcset", "action", "xlink:href"))
    assert not any(n.startswith("on") for _, a in page.tags for n in a)
    assert not re.search(r"@import|url\(|https?:", source)
    policy = next(a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv"))
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def with_text(text: str) -> FitReport:
    measure = text + "."  # never the name of a measure whose meaning is told
    return replace(
        small_report(),
        kind=text,
        about=text,
        measure=measure,
        measures=(measure, "RR"),
        systems=[
            SystemFigures(text, text, {}, {measure: 0.5}, 0.5),
            SystemFigures("b", "b", error=text + "."),
            SystemFigures("answer_ranker", "c", {}, {measure: 0.6}),
        ],
        verdict=[text, text],
        curve=[(1, {text: 0.5}), (2, {text: 0.7})],
        confusions=[Confusion(text + ".", text + ".", 1, text + ".")],
        best=[Asked(text + ".", text + ".", text + ".", 1, 0.0, [(text, 1.0)])],
        worst=[Asked(text + ".", text + ".", text + ".", 2, 0.0, [(text, -1.0)])],
        notes=[text],
    )


@examples(60)
@given(st.one_of(st.sampled_from(NASTY), st.text(st.characters(), min_size=1, max_size=30)))
def test_no_text_becomes_markup(text: str) -> None:
    source = render(with_text(text))
    source.encode("utf-8")
    plain = Page(render(with_text("x"))).tags
    assert [(tag, sorted(a)) for tag, a in Page(source).tags] == [(tag, sorted(a)) for tag, a in plain]


def test_a_notebook_shows_the_page_in_a_frame_without_scripts() -> None:
    report = with_text("\"'><script>")
    ((tag, attributes),) = Page(fragment(report)).tags
    assert tag == "iframe"
    assert attributes["srcdoc"] == render(report)
    assert attributes["sandbox"] == ""
    assert report._repr_html_() == fragment(report)


def test_what_a_stated_coverage_gave_is_shown_below_the_precisions() -> None:
    promises, coverages = [Promise(0.9, 0.5, 0.84, 0.904)], [Promise(0.8, 0.31, 0.79, 0.913)]
    page = render(replace(small_report(), promises=promises, coverages=coverages))
    assert page.index("--precision 0.95") < page.index("--coverage 0.8") < page.index("91.3%")
    assert "--coverage" not in render(replace(small_report(), promises=promises))
