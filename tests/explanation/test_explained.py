from __future__ import annotations

import io
from html.parser import HTMLParser
from typing import ClassVar

import numpy as np
import pytest
from rich.console import Console

from matchloom.explanation import Explanation, explain, render_html
from matchloom.types import Pair, Scores, Signal, Trace
from tests.explanation.samples import tensor_like
from tests.refusing import refused


class Shared:
    """Counts the words two texts contribution, and says which."""

    name = "shared"

    def score(self, pairs: list[Pair], *, progress: bool = False) -> Scores:
        return np.array([self.trace(p.query, p.text)[2].score for p in pairs], dtype=np.float32)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        left, right = query.split(), text.split()
        grid = np.array([[[float(a == b) for b in right] for a in left]], dtype=np.float32)
        signals = [Signal(int(i), int(j), 0, 1.0, 1.0) for _, i, j in np.argwhere(grid)]
        return left, right, Trace(float(grid.sum()), signals, 0.0, grid, ["exact"])


class Silent:
    name = "random"

    def score(self, pairs: list[Pair], *, progress: bool = False) -> Scores:
        return np.zeros(len(pairs), dtype=np.float32)


def test_explain_keeps_name_words_and_trace() -> None:
    explanation = explain(Shared(), "a lost key", "the key a")
    assert (explanation.scorer, explanation.query, explanation.text) == (
        "shared",
        ["a", "lost", "key"],
        ["the", "key", "a"],
    )
    assert [(s.left, s.right) for s in explanation.trace.signals] == [(0, 2), (2, 1)]
    assert explanation.trace.score == 2.0


def test_a_scorer_without_trace_is_named() -> None:
    with refused("not_supported", "'random'") as error:
        explain(Silent(), "a", "b")
    assert "\n" not in str(error.value)


def test_a_trace_that_does_not_add_up_is_refused() -> None:
    good = tensor_like()
    for score in (0.51, float("nan"), float("inf")):
        with refused("mismatch", "0.5"):
            Explanation("x", good.query, good.text, good.trace._replace(score=score))
    # What float32 loses in adding is no fault.
    Explanation("x", good.query, good.text, good.trace._replace(score=0.5 + 1e-6))


def test_a_grid_of_another_shape_is_refused() -> None:
    good = tensor_like()
    with refused("mismatch", "expected", "2", "3", "4"):
        Explanation("x", good.query[:2], good.text, good.trace)


@pytest.mark.parametrize("place", [{"left": 3}, {"right": 4}, {"channel": 2}, {"left": -1}])
def test_a_signal_outside_the_grid_is_refused(place: dict[str, int]) -> None:
    good = tensor_like()
    stray = good.trace.signals[0]._replace(**place)
    with refused("mismatch", "outside"):
        Explanation("x", good.query, good.text, good.trace._replace(signals=[stray, *good.trace.signals[1:]]))


def test_it_says_in_one_line_what_it_is() -> None:
    assert repr(tensor_like()) == "Explanation(mv_lstm: score 0.5 of 3 x 4 words, 4 signals)"
    assert repr(explain(Shared(), "a", "b a")) == "Explanation(shared: score 1 of 1 x 2 words, 1 signal)"


def test_rich_prints_what_the_terminal_shows() -> None:
    def printed(what: object) -> str:
        console = Console(file=io.StringIO(), width=100, color_system=None)
        console.print(what)
        return console.file.getvalue()  # type: ignore[attr-defined]

    assert printed(tensor_like()) == printed(tensor_like().to_terminal())
    assert "map of tensor 1" in printed(tensor_like())
    assert "map of tensor 2" in printed(tensor_like().to_terminal(channel="tensor 2"))


def test_a_notebook_shows_the_page_in_a_frame_of_its_own() -> None:
    class Frame(HTMLParser):
        found: ClassVar[list[tuple[str, dict[str, str | None]]]] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.found.append((tag, dict(attrs)))

    one = tensor_like()
    evil = Explanation("<b>\"'", ['"><script>', "my", "passport"], one.text, one.trace)
    frame = Frame()
    frame.feed(evil._repr_html_())
    ((tag, attributes),) = frame.found
    assert tag == "iframe"
    assert attributes["srcdoc"] == evil.to_html() == render_html([evil])
    assert attributes["sandbox"] == "allow-scripts"
