"""The demo goes through the front door: fit, its report, a search that is explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchloom.cli import demo
from matchloom.types import Pair
from tests.cli.conftest import Run

THINGS = ("file", "socket", "thread", "queue", "list", "string", "date", "number", "folder", "process")
DEEDS = {"open": "opens it for reading", "close": "closes it for good", "sort": "puts it in order", "copy": "copies it"}


def small_docs() -> list[Pair]:
    return [
        Pair(f"{deed} a {thing} of the user", f"this {thing} is given and the call {what}, then returns the {thing}")
        for thing in THINGS
        for deed, what in DEEDS.items()
    ]


def test_it_fits_searches_explains_and_says_what_next(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "read_pydocs", small_docs)
    result = run("demo", "--out", tmp_path / "d")
    assert result.code == 0, result.err
    assert "40 pairs (summary, description)" in result.out
    assert "answer_ranker" in result.out
    assert "bm25_stemmed" in result.out
    assert "matchloom fit YOUR_FILE" in result.out
    for name in ("pydocs.tsv", "fitted/collection.json", "fitted/report.html"):
        assert (tmp_path / "d" / name).is_file(), name
    assert run("search", tmp_path / "d" / "fitted", "opening a socket", "--top", "1").code == 0
