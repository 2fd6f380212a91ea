"""Behind an engine: its candidates in the scorer's order; what it gives is checked."""

from __future__ import annotations

from typing import Any

import pytest

from matchloom import BM25, Collection
from matchloom.search.behind import BehindEngine
from tests.refusing import refused

TEXTS = {"a": "use a loom", "b": "use a mill", "c": "use a saw and a mill"}
SCORER = BM25.fit(list(TEXTS.values()))


def find(question: str, count: int) -> list[dict[str, Any]]:
    return [{"id": name, "text": text, "url": f"/{name}", "none": None} for name, text in TEXTS.items()]


def test_candidates_come_in_the_scorers_order_with_their_columns() -> None:
    hits = BehindEngine(find, SCORER).search("a mill", explain=True)
    assert [hit.id for hit in hits] == ["b", "c", "a"]
    assert hits[0].columns == {"url": "/b"}
    assert hits[0].score == pytest.approx(hits[0].explanation.trace.score)
    assert [hit.id for hit in BehindEngine(find, SCORER).search("a mill", top=1)] == ["b"]
    assert BehindEngine(lambda question, count: [], SCORER).search("a mill") == []


def test_a_collection_orders_what_another_engine_found() -> None:
    known = Collection.fit([("how do I grind?", "use a mill"), ("how do I weave?", "use a loom")])
    assert BehindEngine(find, known).search("weaving", top=1)[0].id == "a"


def test_an_engine_that_gives_too_much_or_doubles_is_cut() -> None:
    many = [("a", "use a loom"), ("a", "use a mill"), ("b", "a saw"), ("c", "a mill")]
    hits = BehindEngine(lambda question, count: many, SCORER, candidates=3).search("a mill", top=None)
    assert {hit.id: hit.text for hit in hits} == {"a": "use a loom", "b": "a saw"}


def test_what_is_no_candidate_is_named() -> None:
    bad: Any
    for bad in ({"id": "a"}, {"text": "b"}, ("a",), {"id": "a", "text": 3}):
        with refused("bad_row", "candidate 1"):
            BehindEngine(lambda question, count, bad=bad: [bad], SCORER).search("a mill")
    with refused("wrong_type", "find"):
        BehindEngine("postgres", SCORER)  # type: ignore[arg-type]
    with refused("bad_value", "candidates"):
        BehindEngine(find, SCORER, candidates=0)
