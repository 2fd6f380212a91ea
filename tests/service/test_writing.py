"""Archives that are written through the service, and thumbs that `fit` takes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fastapi import FastAPI

from matchloom.search.lance.collection import LanceCollection
from matchloom.types import Pair
from tests.service.making import ask, code_of, make_app


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
