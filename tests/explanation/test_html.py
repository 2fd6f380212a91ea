from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.basics.screen import printable
from matchloom.explanation import Explanation, render_html
from matchloom.types import Signal, Trace
from tests.drawing import examples
from tests.explanation.samples import lexical_like, of_words, path_like, tensor_like
from tests.refusing import refused


class Page(HTMLParser):
    """What a browser would make of the page: its tags in order, the words of the texts, scripts and data."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, list[str]] = {"query": [], "text": []}
        self.scripts: list[str] = []
        self.data: list[dict[str, Any]] = []
        self.rows: list[list[str]] = []
        self.title = ""
        self._side = ""
        self._open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        self._side = attributes.get("data-side") or self._side
        if tag not in ("meta", "link", "br"):
            self._open.append(tag)
        if (attributes.get("class") or "").split()[:1] == ["w"]:
            self.words[self._side].append("")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        attributes = self.tags[-1][1] if self.tags else {}
        if self._open[-1:] == ["title"]:
            self.title += data
        elif self._open[-1:] == ["script"]:
            if attributes.get("class") == "data":
                self.data.append(json.loads(data))
            else:
                self.scripts.append(data)
        elif (
            self._open and (attributes.get("class") or "").split()[:1] == ["w"] and self._open[-1] in ("span", "button")
        ):
            self.words[self._side][-1] += data
        elif "tr" in self._open and self.rows[-1]:
            self.rows[-1][-1] += data

    def policy(self) -> str:
        return next(a["content"] or "" for t, a in self.tags if t == "meta" and a.get("http-equiv"))


def test_paths_and_parts_are_on_the_page() -> None:
    page = Page(render_html([path_like()]))
    assert page.data[0]["map"]["paths"] == {"0": [[0, 0], [0, 1], [1, 2], [2, 2]]}
    rows = ["".join(row) for row in page.rows]
    assert any(row.startswith("new number (1.000)−0.2500") for row in rows)
    assert any(row.startswith("shared words (0.500)+0.1250") for row in rows)
    assert Page(render_html([tensor_like()])).data[0]["map"]["paths"] == {}


def test_no_explanations() -> None:
    with refused("no_data", "least"):
        render_html([])


def test_the_page_needs_nothing_from_outside() -> None:
    source = render_html([tensor_like()])
    page = Page(source)
    assert {t for t, _ in page.tags}.isdisjoint({"link", "img", "iframe", "object", "embed", "base", "form"})
    assert not any(name in attributes for _, attributes in page.tags for name in ("src", "href", "srcset"))
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(", source)
    # The one namespace name is no address that is fetched.
    assert set(re.findall(r"https?://[^\s\"'`]+", source)) == {"http://www.w3.org/2000/svg"}


def test_the_policy_admits_this_script_alone() -> None:
    page = Page(render_html([tensor_like()]))
    (script,) = page.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert page.policy() == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_title_texts_and_shading() -> None:
    page = Page(render_html([tensor_like()]))
    assert page.title == "Score 0.5000 by mv_lstm: renew my passport"
    assert page.words == {"query": ["renew", "my", "passport"], "text": ["a", "new", "passport", "abroad"]}
    buttons = [a for t, a in page.tags if t == "button"]
    assert [(b["data-at"], b["class"], b["style"], b["title"]) for b in buttons] == [
        ("0", "w up", "--s:0.571", "contribution +0.2500"),
        ("2", "w up", "--s:1.000", "contribution +0.4375"),
        ("1", "w up", "--s:0.571", "contribution +0.2500"),
        ("2", "w up", "--s:0.857", "contribution +0.3750"),
        ("3", "w up", "--s:0.143", "contribution +0.0625"),
    ]


def test_the_table_goes_from_nothing_to_the_score() -> None:
    page = Page(render_html([tensor_like()]))
    assert page.rows == [
        ["query word", "text word", "channel", "value", "contribution", "so far", "from 0 to the score"],
        # One pair of words that counts in two channels is one row, which opens.
        ["passport3", "passport3", "2 channels", "", "+0.3750", "0.3750", ""],
        ["", "", "tensor 1", "1.000", "+0.5000", "0.5000", ""],
        ["", "", "tensor 2", "0.900", "−0.1250", "0.3750", ""],
        ["renew1", "new2", "tensor 1", "0.800", "+0.2500", "0.6250", ""],
        ["passport3", "abroad4", "tensor 2", "0.800", "+0.0625", "0.6875", ""],
        ["residual (bias, and what belongs to no word pair)", "−0.1875", "0.5000", ""],
        ["score", "0.5000", "0.5000", ""],
    ]
    # Bars of a waterfall over 0 to .6875: the pair, and its two channels, each beginning where the one before ended.
    bars = [a["style"] for t, a in page.tags if t == "i" and a.get("style")]
    assert bars[:3] == ["--from:0.00%;--size:54.55%", "--from:0.00%;--size:72.73%", "--from:54.55%;--size:18.18%"]
    assert bars[-1] == "--from:0.00%;--size:72.73%"


def test_many_signals_are_summed_in_one_row() -> None:
    words = [str(i) for i in range(30)]
    rows = Page(render_html([of_words(words, words)])).rows
    assert len(rows) == 1 + 25 + 3
    assert [row[0] for row in rows[-3:]] == ["5 more", "residual (bias, and what belongs to no word pair)", "score"]
    assert rows[-3][1:3] == ["+5.00", "30.00"]


def test_the_map_data() -> None:
    (data,) = Page(render_html([tensor_like()])).data
    assert data["pairs"] == [[2, 2, 0.375], [0, 1, 0.25], [2, 3, 0.0625]]
    heat = data["map"]
    assert [word["word"] for word in heat["rows"]] == ["renew", "my", "passport"]
    assert heat["channels"][0]["values"] == [0.1, 0.8, 0.2, -0.4, 0.0, 0.1, 0.0, 0.1, 0.1, 0.2, 1.0, 0.3]
    assert [(c["low"], c["high"], c["label"]) for c in heat["channels"]] == [
        (-1.0, 1.0, "tensor 1 (contribution +0.7500)"),
        (0.6, 0.9, "tensor 2 (contribution −0.0625)"),
    ]
    assert heat["first"] == 0
    assert {(m["row"], m["col"], m["channel"]) for m in heat["marks"]} == {(0, 1, 0), (2, 2, 0), (2, 2, 1), (2, 3, 1)}


def test_large_maps_are_cut_with_a_note_and_keep_the_signals() -> None:
    grid = np.random.default_rng(1).normal(size=(4, 200, 200)).astype(np.float32)
    trace = Trace(1.0, [Signal(199, 150, 3, float(grid[3, 199, 150]), 1.0)], 0.0, grid, list("pqrs"))
    words = [f"w{i}" for i in range(200)]
    source = render_html([Explanation("mv_lstm", words, words, trace)])
    assert "Not in the map: 140 of 200 query words and 80 of 200 text words" in source
    heat = Page(source).data[0]["map"]
    assert [len(c["values"]) for c in heat["channels"]] == [60 * 120] * 4
    (mark,) = heat["marks"]
    assert (heat["rows"][mark["row"]]["at"], heat["cols"][mark["col"]]["at"], mark["channel"]) == (199, 150, 3)
    cell = heat["channels"][3]["values"][mark["row"] * 120 + mark["col"]]
    assert cell == pytest.approx(grid[3, 199, 150], rel=1e-3)
    assert len(source) < 400_000


def test_very_long_texts_are_cut_with_a_note() -> None:
    page_source = render_html([of_words(["a"], ["b"] * 1000)])
    assert "400 of 1000 words not shown" in page_source
    assert len(Page(page_source).words["text"]) == 600


def test_several_share_a_scale_and_keep_their_order() -> None:
    strong = of_words(["same"], ["one"])
    weak = Explanation(
        "scorer",
        ["same"],
        ["two"],
        Trace(0.25, [Signal(0, 0, 0, 0.5, 0.25)], 0.0, np.full((1, 1, 1), 0.5, np.float32), ["cosine"]),
    )
    source = render_html([weak, strong])
    page = Page(source)
    assert (
        source.index('id="e1"')
        < source.index(">two</button>")
        < source.index('id="e2"')
        < source.index(">one</button>")
    )
    assert [a["style"] for t, a in page.tags if t == "button"] == ["--s:0.250"] * 2 + ["--s:1.000"] * 2
    assert [(d["map"]["channels"][0]["low"], d["map"]["channels"][0]["high"]) for d in page.data] == [(0.5, 1.0)] * 2
    assert [a for t, a in page.tags if t == "details"] == [
        {"class": "one", "id": "e1", "open": None},
        {"class": "one", "id": "e2"},
    ]
    assert "<h1>same</h1>" in source
    assert "<h1>2 scores explained</h1>" in render_html([strong, lexical_like()])


def test_no_words() -> None:
    source = render_html([of_words([], ["a"])])
    assert "(no words)" in source
    assert "One side has no words." in source
    assert "map" not in Page(source).data[0]


def test_the_same_explanation_gives_the_same_page() -> None:
    one = tensor_like()
    shuffled = Explanation(one.scorer, one.query, one.text, one.trace._replace(signals=one.trace.signals[::-1]))
    assert render_html([one]) == render_html([tensor_like()])
    assert Page(render_html([one])).rows == Page(render_html([shuffled])).rows


NASTY = [
    "</script><img src=x onerror=alert(1)>",
    "<!--",
    "-->",
    "]]>",
    "'\"><svg/onload=alert(1)>",
    "&lt;",
    "$body",
    "${x}",
    "\\u003c",
]


@examples(60)
@given(
    st.lists(st.one_of(st.sampled_from(NASTY), st.text(st.characters(), min_size=1)), min_size=1, max_size=4),
    st.one_of(st.sampled_from(NASTY), st.text(st.characters(), min_size=1)),
)
def test_no_word_becomes_markup(words: list[str], other: str) -> None:
    explanation = Explanation(other, words, [other, *words], of_words(words, [other, *words], channel=other).trace)
    source = render_html([explanation, explanation])
    source.encode("utf-8")
    page = Page(source)
    harmless = ["x"] * len(words)
    plain = Explanation("x", harmless, ["x", *harmless], of_words(harmless, ["x", *harmless], channel="x").trace)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in Page(render_html([plain, plain])).tags]
    assert page.words == {
        "query": [printable(w) for w in words] * 2,
        "text": [printable(w) for w in [other, *words]] * 2,
    }
    # Any "<" might end the data, in a browser as it is or will be; the only one is that of the closing tag.
    assert [line.count("<") for line in re.findall('class="data">(.*)', source)] == [1, 1]
    for data in page.data:
        assert [w["word"] for w in data["map"]["rows"]] == [printable(w) for w in words]
        assert data["map"]["channels"][0]["name"] == printable(other)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_the_scripts_run_in_a_browser(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    evil = "</script><script>document.title='broken'</script>"
    one = tensor_like()
    path.write_text(
        render_html([Explanation(one.scorer, ["renew", evil, "passport"], one.text, one.trace)]), encoding="utf-8"
    )
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    more = (
        f"--disable-component-update --disable-sync --virtual-time-budget=2000 --user-data-dir={tmp_path / 'profile'}"
    )
    command = ["chromium", *flags.split(), *more.split(), "--dump-dom", path.as_uri()]
    dom = subprocess.run(command, capture_output=True, check=True, timeout=120, encoding="utf-8").stdout
    assert '<div class="heat-stage"' in dom
    assert dom.count('<rect class="mark"') == 2  # the two signals of the channel that is shown
    assert "<title>Score 0.5000 by mv_lstm" in dom
