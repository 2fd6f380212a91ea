"""Archives that are written through the service, and thumbs that `fit` takes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fastapi import FastAPI

from matchloom import read_pairs
from matchloom.data.kinds import kind_of
from matchloom.search.lance.collection import LanceCollection
from matchloom.types import Pair
from tests.service.making import PAIRS, TEXTS, ask, code_of, make_app


@pytest.fixture
def writable(served: Path, tmp_path: Path) -> FastAPI:
    shutil.copytree(served / "tickets", tmp_path / "tickets")
    shutil.copytree(served / "faq", tmp_path / "faq")
    shutil.copytree(served / "mv", tmp_path / "mv")
    return make_app(tmp_path, "tickets", "faq", "mv", writable=True, feedback=tmp_path / "thumbs.jsonl")


def test_add_replace_and_delete(writable: FastAPI, tmp_path: Path) -> None:
    pair = {"query": "where are my invoices", "text": "Under Billing.", "query_id": "q9", "text_id": "billing"}
    path = "/v1/archives/tickets/pairs"
    assert ask(writable, path, {"pairs": [pair]}).json() == {"new": 1, "replaced": 0}
    assert ask(writable, path, {"pairs": [{**pair, "text": "Below."}]}).json() == {"new": 0, "replaced": 1}
    found = ask(writable, "/v1/search", {"question": pair["query"], "top": 9}).json()["answers"]
    assert ("q9/billing", "Below.") in [(one["id"], one["text"]) for one in found], "what was confirmed is found"
    assert len(LanceCollection.open(tmp_path / "tickets")) == 9, "and on the disk"
    done = ask(writable, "/v1/archives/tickets/delete", {"ids": ["q9/billing", "nothing"]}).json()
    assert done == {"deleted": 1, "unknown": ["nothing"]}
    assert len(LanceCollection.open(tmp_path / "tickets")) == 8
    assert ask(writable, path, {"pairs": []}).json() == {"new": 0, "replaced": 0}


def test_what_cannot_be_written(writable: FastAPI, tmp_path: Path) -> None:
    assert code_of(ask(writable, "/v1/archives/mv/pairs", {"pairs": []})) == (404, "unknown")
    index = LanceCollection.open(tmp_path / "tickets")
    index.add([Pair("a b", "one", query_id="l1", text_id="1"), Pair("c d", "two", query_id="l2", text_id="1")])
    assert code_of(ask(writable, "/v1/archives/tickets/delete", {"ids": ["1"]})) == (409, "conflict")


def test_thumbs_are_pairs_that_fit_takes(writable: FastAPI, tmp_path: Path) -> None:
    odd = 'a "quoted"\n\ttext with \u2028 and <b>'
    for question, text, label in [("lost password", TEXTS[0], 1), ("lost password", TEXTS[2], 0), (odd, odd, 1)]:
        body = {"question": question, "text": text, "label": label, "id": "password", "system": "faq"}
        assert ask(writable, "/v1/feedback", body).json() == {"kept": True}
    file = tmp_path / "thumbs.jsonl"
    assert file.stat().st_mode & 0o077 == 0, "questions are nobody else's business"
    found = list(read_pairs(file))
    assert [(pair.query, pair.text, pair.label) for pair in found] == [
        ("lost password", TEXTS[0], 1.0),
        ("lost password", TEXTS[2], 0.0),
        (odd, odd, 1.0),
    ]
    assert kind_of([*PAIRS, *found]).pairs == len(PAIRS) + 3
    assert json.loads(file.read_text(encoding="utf-8").splitlines()[0])["system"] == "faq"
    for label in (2, -1, 0.5, True, "1", None):
        bad = {"question": "a", "text": "b", "label": label}
        assert code_of(ask(writable, "/v1/feedback", bad)) == (422, "invalid")


def test_thumbs_that_cannot_be_kept_are_told(served: Path, tmp_path: Path) -> None:
    app = make_app(served, "mv", feedback=tmp_path / "none" / "thumbs.jsonl")
    assert code_of(ask(app, "/v1/feedback", {"question": "a", "text": "b", "label": 1})) == (422, "refused")
