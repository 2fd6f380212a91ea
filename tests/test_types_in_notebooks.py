"""What a notebook shows of a ranking: a table of its fields, in which no text does anything."""

from __future__ import annotations

from html.parser import HTMLParser

from matchloom.types import Hit, Hits, Ranked, Ranking

HOSTILE = "<script>alert(1)</script>\"' onmouseover=x <img src=http://x/> \u202egnp \ud800 &amp;"


class Seen(HTMLParser):
    """The elements of a page, and its words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style", "dir", "scope"}

    def handle_data(self, data: str) -> None:
        self.words += f"{data}|"


def test_hits_show_the_fields_that_say_something() -> None:
    page = Hits([Hit("a", "By card.", 1.23456, 0.9, "How to pay?"), Hit("b", "No.", 0.5)], 0.95, True)._repr_html_()
    seen = Seen(page)
    assert seen.words == (
        "probability that any answer is right: 0.950; certain enough|id|text|score|probability|question|"
        "1|a|By card.|1.235|0.9|How to pay?|2|b|No.|0.5|"
    )
    assert "Nothing was found" in Hits()._repr_html_()
    assert "not certain enough" in Hits(answered=False)._repr_html_()


def test_a_ranking_is_a_list_that_shows_itself() -> None:
    rows = [Ranked(n, float(n), "x" * 1000) for n in range(200)]
    assert Ranking(rows) == rows
    page = Ranking(rows)._repr_html_()
    assert page.count("<tr>") == 51
    assert "150 more" in page
    assert len(page) < 50_000


def test_text_from_outside_is_shown_and_never_run() -> None:
    for page in (
        Ranking([Ranked(0, 1.0, HOSTILE)])._repr_html_(),
        Hits([Hit(HOSTILE, HOSTILE, 1.0, question=HOSTILE)])._repr_html_(),
    ):
        page.encode()
        seen = Seen(page)
        assert seen.tags <= {"table", "thead", "tbody", "tr", "th", "td", "bdi", "p"}
        assert HOSTILE.replace("\ud800", "?") in seen.words
