"""The demo, on a small library of made-up documentation and with a small model."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchloom.cli import demo
from matchloom.matcher import Matcher
from matchloom.types import Pair
from tests.cli.conftest import Run

THINGS = ["file", "socket", "window", "thread", "queue", "parser", "header", "lock", "timer", "buffer"]
VERBS = ["open", "close", "read", "write", "reset", "lock", "copy", "move", "print", "check"]


def small_docs() -> list[Pair]:
    pairs = []
    for thing in THINGS:
        for verb in VERBS:
            text = f"When the {thing} is ready, {verb} the {thing} and tell the caller how the {verb} of it went."
            pairs.append(
                Pair(f"{verb.title()} the given {thing} at once.", text, 1.0, f"{thing}.{verb}", f"{thing}.{verb}")
            )
    return pairs


def test_it_trains_compares_explains_and_says_what_next(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matchloom.cli.demo.read_pydocs", small_docs)
    monkeypatch.setattr(demo, "ARGUMENTS", {"hidden": 4, "slices": 2, "lexical": True})
    monkeypatch.setattr(demo, "SETTINGS", {"epochs": 2, "optimizer": "adam", "learning_rate": 0.01})
    result = run("demo", "--out", tmp_path / "d", "--seeds", "2")
    assert result.code == 0, result.err
    assert "100 pairs (summary, description) from the documentation of Python 3." in result.out
    assert "over 2 draws of lists, split and model" in result.out
    for row in (
        "MV-LSTM with exact matches",
        "random",
        "bm25_stemmed",
        "soft_coverage",
        "queries shuffled",
        "text length",
    ):
        assert f"\n{row} " in result.out
    assert "text length                 0.200 ±0.000" in result.out, "grouped lists leak nothing"
    assert "Ranked first of all" in result.out
    assert f"matchloom evaluate {tmp_path / 'd'} {tmp_path / 'd'}/test.tsv" in result.out
    assert Matcher.load(tmp_path / "d").name == "mv_lstm"
    assert "<html" in (tmp_path / "d" / "explained.html").read_text(encoding="utf-8")
    checked = run("evaluate", tmp_path / "d", tmp_path / "d" / "test.tsv")
    assert checked.code == 0, checked.err
