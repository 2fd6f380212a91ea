"""Entries: an answer with its questions and the user's own columns, whatever the source."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from matchloom.data.entries import Entry, entries_of, read_entries
from matchloom.data.identity import digest
from matchloom.types import MatchloomError, Pair

FAQ = """id;Question;Answer;URL;Category
1;How do I pay?;By card or invoice.;/pay;money
2;Which cards?;by card  or invoice.;/pay;money
3;Where are you?;In Ghent.;;
"""


def test_own_columns_come_along(tmp_path: Path) -> None:
    file = tmp_path / "faq.csv"
    file.write_text(FAQ)
    pay, where = read_entries(file)
    assert pay.questions == ("How do I pay?", "Which cards?")
    assert pay.text == "By card or invoice."
    assert pay.id == digest("by card or invoice.")
    assert pay.columns == {"id": "1", "URL": "/pay", "Category": "money"}
    assert where == Entry(digest("in ghent."), "In Ghent.", ("Where are you?",), {"id": "3"})


def test_dicts_and_frames_have_own_columns_too() -> None:
    import pyarrow

    rows = [{"query": "who?", "text": "me", "text_id": "a1", "lang": "en", "rank": 2.0, "tags": ["x"], "none": None}]
    expected = [Entry("a1", "me", ("who?",), {"lang": "en", "rank": "2", "tags": '["x"]'})]
    assert read_entries(rows) == expected
    assert read_entries(pyarrow.Table.from_pylist(rows)) == expected
    assert read_entries([("who?", "me"), Pair("you?", "ME", text_id="z")])[0].id == "z"


def test_the_order_of_lines_changes_no_entry() -> None:
    rows = [(Pair(f"q{n}", f"answer {n % 3}", text_id=str(n % 3)), {"n": str(n % 2)}) for n in range(30)]
    expected = sorted(entries_of(rows), key=lambda entry: entry.id)
    random.Random(0).shuffle(rows)
    assert sorted(entries_of(rows), key=lambda entry: entry.id) == expected


def test_ids_that_name_no_answer_are_not_ids() -> None:
    texts = [("0", "dogs bark"), ("0", "trees grow tall"), ("1", "rain falls"), ("1", "snow is cold")]
    texts += [("2", "sea and wind"), ("2", "fire burns")]
    found = entries_of([(Pair(text, text, text_id=name), {}) for name, text in texts])
    assert [entry.id for entry in found] == [digest(text) for _, text in texts]


def test_wrong_texts_are_no_entries() -> None:
    assert [entry.text for entry in entries_of([(Pair("q", "a", 0.0), {}), (Pair("q", "b", 1.0), {})])] == ["b"]
    with pytest.raises(MatchloomError) as error:
        entries_of([(Pair("q", "a", 0.0), {})])
    assert error.value.code == "no_data"
