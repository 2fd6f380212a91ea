"""A mixed trace adds up to the mixture, and each of its cells is a cell of one term."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.explanation import Explanation, Term, mixed_trace, term_of
from matchloom.explanation.cells import channel_contributions, paths, word_contributions
from matchloom.traces import grid_trace
from matchloom.types import Component, Pair, Scores
from tests.explanation.samples import lexical_like, path_like

QUERY = ["who", "wove", "this", "cloth"]


@st.composite
def terms(draw: st.DrawFn) -> list[Term]:
    """Up to three terms, some of which have read fewer words of the query, or have cut it otherwise."""
    made = []
    for n in range(draw(st.integers(1, 3))):
        query = QUERY[: draw(st.integers(0, 4))] if draw(st.booleans()) else ["whowove", "thiscloth"]
        text = [f"text{n}"] * draw(st.integers(0, 3))
        channels = [f"c{k}" for k in range(draw(st.integers(0, 2)))]
        rng = np.random.default_rng(draw(st.integers(0, 1000)))
        shape = (len(channels), len(query), len(text))
        contributions = rng.normal(size=shape) * (rng.random(shape) < 0.7)
        components = [Component("bias", 1.0, rng.normal(), 0 if channels else None)] * draw(st.integers(0, 2))
        trace = grid_trace(rng.normal(), rng.normal(size=shape).astype("f4"), contributions, channels, components)
        weight = draw(st.sampled_from([0.0, 0.3, 1.0, 2.5]))
        made.append(Term(f"t{n}", weight, query, text, trace._replace(paths=draw(st.booleans()))))
    return made


@given(terms())
def test_it_adds_up_and_every_cell_is_one_of_a_term(given: list[Term]) -> None:
    query, text, trace = mixed_trace(given)
    explanation = Explanation("mixture", query, text, trace)  # which checks the sum, the shape and every place
    assert trace.score == pytest.approx(sum(term.weight * term.trace.score for term in given))
    assert text == [word for term in given for word in term.text]
    expected: Counter[tuple[str, str, str, float, float]] = Counter()
    for term in given:
        for s in term.trace.signals if term.weight else ():
            place = (term.query[s.left], term.text[s.right], f"{term.name}: {term.trace.channels[s.channel]}")
            expected[(*place, s.value, term.weight * s.contribution)] += 1
    found = Counter(
        (query[s.left], text[s.right], trace.channels[s.channel], s.value, s.contribution) for s in trace.signals
    )
    assert found == expected
    for s in trace.signals:
        assert trace.grid[s.channel, s.left, s.right] == np.float32(s.value)
    start = channel = 0
    _, by_word = word_contributions(explanation)
    for term in given:
        own = sum(s.contribution for s in term.trace.signals)
        assert sum(by_word[start : start + len(term.text)]) == pytest.approx(term.weight * own, abs=1e-9)
        size = len(term.trace.channels)
        of_channels = sum(channel_contributions(explanation)[channel : channel + size])
        inside = sum(one.contribution for one in term.trace.components if one.channel is not None)
        assert of_channels == pytest.approx(term.weight * (own + inside), abs=1e-9)
        assert set(paths(explanation)) & set(range(channel, channel + size)) == (
            {channel + s.channel for s in term.trace.signals} if term.trace.paths and term.weight else set()
        )
        start, channel = start + len(term.text), channel + size


def test_a_query_that_all_have_read_stands_there_once() -> None:
    one, other = path_like(), lexical_like()
    same = Term("a", 0.5, one.query, one.text, one.trace)
    cut = Term("b", 0.5, one.query[:2], other.text, other.trace)
    assert mixed_trace([same, cut])[0] == mixed_trace([cut, same])[0] == one.query
    differs = cut._replace(query=["lost", "key"])
    query, text, trace = mixed_trace([same, differs])
    assert query == [*one.query, "lost", "key"]
    assert {(s.left, s.right) for s in trace.signals if s.channel == 1} == {(4, 4), (4, 6)}
    assert paths(Explanation("x", query, text, trace)).keys() == {0}  # of the first term alone


def test_a_scorer_without_a_trace_is_one_component() -> None:
    class Silent:
        name = "silent"

        def score(self, pairs: list[Pair], *, progress: bool = False) -> Scores:
            return np.zeros(len(pairs), np.float32)

    term = term_of("answer", 0.25, Silent(), "a b", "c", 0.8, str.split)
    assert (term.query, term.text) == (["a", "b"], ["c"])
    _, _, trace = mixed_trace([term])
    assert trace.components == [Component("answer: score by silent", 0.8, 0.2)]
    assert trace.score == pytest.approx(0.2)


def test_sections_are_shown_under_their_names() -> None:
    one = path_like()
    sections = (("question", 0), ("answer", 3))
    explanation = Explanation(one.scorer, one.query, one.text, one.trace, sections)
    assert [side[:4] for side in explanation.sides()] == [
        ("query", 0, 0, 3),
        ("question", 1, 0, 3),
        ("answer", 1, 3, 4),
    ]
    assert explanation.to_dict()["text"]["sections"] == [
        {"name": "question", "start": 0},
        {"name": "answer", "start": 3},
    ]
    assert explanation.to_html().count('data-side="text"') == 2
    assert "sections" not in one.to_dict()["text"]


def test_one_text_that_all_have_read_stands_there_once() -> None:
    trace = grid_trace(1.0, np.ones((1, 1, 2), "f4"), np.array([[[0.25, 0.5]]]), ["c"])
    shorter = grid_trace(0.5, np.ones((1, 1, 1), "f4"), np.array([[[0.5]]]), ["c"])
    given = [Term("a", 2.0, ["who"], ["old", "cloth"], trace), Term("b", 1.0, ["who"], ["old"], shorter)]
    query, text, mixed = mixed_trace(given, one_text=True)
    assert (query, text) == (["who"], ["old", "cloth"])
    _, by_word = word_contributions(Explanation("mixture", query, text, mixed))
    assert by_word == pytest.approx([1.0, 1.0])
    cut_otherwise = given[1]._replace(text=["oldcloth"])
    assert mixed_trace([given[0], cut_otherwise], one_text=True)[1] == ["old", "cloth", "oldcloth"]
