from __future__ import annotations

import json
from pathlib import Path

import pytest

from matchloom import Matcher, Pair
from tests.cli.conftest import Run, error_of

QUERY, TEXT = "how is cloth made", "threads are crossed and cloth is made on a [loom]"


def test_json_adds_up_to_the_matchers_score(run: Run, trained: Path) -> None:
    result = run("explain", trained, QUERY, TEXT, "--json")
    assert result.code == 0, result.err
    plain = json.loads(result.out)
    expected = float(Matcher.load(trained).score([Pair(QUERY, TEXT)])[0])
    assert plain["score"] == pytest.approx(expected, abs=1e-4)
    assert plain["residual"] + sum(signal["contribution"] for signal in plain["signals"]) == pytest.approx(
        expected, abs=1e-3
    )
    assert plain["query"]["words"] == QUERY.split()
    words = len(plain["text"]["words"])
    assert [len(plain["grid"]), len(plain["grid"][0]), len(plain["grid"][0][0])] == [len(plain["channels"]), 4, words]


def test_in_the_terminal_one_map_can_be_chosen(run: Run, trained: Path) -> None:
    result = run("explain", trained, QUERY, TEXT)
    assert result.code == 0, result.err
    assert result.out.startswith("mv_lstm  score ")
    assert "cloth" in result.out
    assert max(map(len, result.out.splitlines())) <= 100
    assert "map of tensor 2," in run("explain", trained, QUERY, TEXT, "--channel", 2).out
    assert "map of same stem," in run("explain", trained, QUERY, TEXT, "--channel", "same stem").out
    for wrong in ("0", "99", "colour"):
        assert "1 (tensor 1)" in error_of(run("explain", trained, QUERY, TEXT, "--channel", wrong))


def test_a_page_is_written(run: Run, trained: Path, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    result = run("explain", trained, QUERY, TEXT, "--html", page)
    assert (result.code, result.out) == (0, "")
    assert str(page) in result.err
    assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    missing = tmp_path / "none" / "why.html"
    assert "create it first" in error_of(run("explain", trained, QUERY, TEXT, "--html", missing))


def test_bm25_with_and_without_a_collection(run: Run, tmp_path: Path) -> None:
    alone = run("explain", "bm25", "the loom", "the loom", "--json")
    assert "--collection" in alone.err
    contributions = {signal["query_word"]: signal["contribution"] for signal in json.loads(alone.out)["signals"]}
    assert contributions["the"] == contributions["loom"]
    texts = tmp_path / "texts.txt"
    texts.write_text("the mill\nthe corn\nthe loom\n")
    known = run("explain", "bm25", "the loom", "the loom", "--json", "--collection", texts)
    assert known.err == ""
    contributions = {signal["query_word"]: signal["contribution"] for signal in json.loads(known.out)["signals"]}
    assert contributions["loom"] > 3 * contributions["the"]


def test_scorers_that_cannot_say_why(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "some.run"
    file.write_text("q Q0 t 1 0.5 x\n")
    for scorer in ("random", file):
        assert "cannot explain its scores" in error_of(run("explain", scorer, "a", "b"))


def test_empty_texts(run: Run, trained: Path) -> None:
    for scorer in (trained, "bm25"):
        for query, text in (("", "loom"), ("loom", ""), ("?", "!")):
            assert run("explain", scorer, query, text).code == 0
