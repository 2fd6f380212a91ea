"""Several systems on the same data."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from rich.console import Console

from matchloom import Matcher, Pair, compare, evaluate
from matchloom.comparison import Comparison, System, SystemResult, check_systems
from matchloom.lexical import fit_scorer
from matchloom.text.tokenize import Tokenizer
from tests.refusing import refused

WORDS = ["bread", "cheese", "paper", "glass", "soap", "rope", "ink", "salt"]
PAIRS = [
    Pair(f"how is {word} made", f"{other} is made by hand {n}", float(word == other), f"q{n}", other)
    for n, word in enumerate(WORDS)
    for other in WORDS[:4] + [word] * (n > 3)
]
SMALL = {"epochs": 1, "batch": 8}


def test_rows_have_the_figures_of_each_system_alone(tmp_path: Path) -> None:
    systems = ["random", "bm25", System("ours", "nbow_mlp", {"units": 4}, {"epochs": 2}), "trans_lm", "bm25"]
    seen: list[SystemResult] = []
    found = compare(
        PAIRS, PAIRS, PAIRS, systems=systems, settings=SMALL, dimensions=4, folder=tmp_path, seed=3, on_row=seen.append
    )
    assert found.rows == seen
    assert [row.system for row in found.rows] == ["random", "bm25", "ours", "trans_lm"]
    assert found.failed == {}
    words = Tokenizer(max_words=200)
    bm25 = fit_scorer("bm25", [pair.text for pair in PAIRS], tokenizer=words)
    assert found.rows[1].values == evaluate(bm25, PAIRS, measures=["P@1", "RR"], baselines=False).values
    ours = Matcher.load(tmp_path / "ours")
    assert ours.arguments == {"units": 4}
    assert (ours.training["config"]["epochs"], ours.training["config"]["batch"]) == (2, 8)
    assert found.rows[2].values == evaluate(ours, PAIRS, measures=["P@1", "RR"], baselines=False).values
    assert found.rows[2].parameters == ours.model.size()
    assert found.rows[0].p is None
    assert all(row.p is not None and 0 < row.p <= 1 for row in found.rows[1:])
    assert all(row.pairs_per_second > 0 for row in found.rows)


def test_it_shows_itself() -> None:
    found = compare(PAIRS, PAIRS, systems=["bm25", "random"])
    assert json.loads(json.dumps(found.to_dict()))["rows"][0]["system"] == "bm25"
    console = Console(width=100)
    with console.capture() as shown:
        console.print(found)
    lines = shown.get().splitlines()
    assert lines[0].split() == ["system", "P@1", "RR", "p", "against", "bm25", "parameters", "minutes", "pairs/s"]
    assert [line.split()[0] for line in lines[1:]] == ["bm25", "random"]
    page = found.to_html()
    assert escape(page) in found._repr_html_()
    assert page.count("<tr ") == 3
    assert ">system</th>" in page
    assert ">bm25</th>" in page


def test_the_page_tells_what_failed() -> None:
    found = Comparison(compare(PAIRS, PAIRS, systems=["bm25"]).rows, {"<b>": "no & vectors"})
    assert "&lt;b&gt;: no &amp; vectors" in found.to_html()
    assert "<b>" not in found.to_html()


def test_what_fails_leaves_the_others_their_rows() -> None:
    seen: list[SystemResult] = []
    found = compare(PAIRS, PAIRS, systems=["bm25", "soft_coverage"], on_row=seen.append)
    assert [row.system for row in found.rows] == ["bm25"]
    assert "soft_coverage needs word vectors" in found.failed["soft_coverage"]
    assert seen[1].error == found.failed["soft_coverage"]
    with refused("failed", "soft_coverage"):
        compare(PAIRS, PAIRS, systems=["soft_coverage"])


def test_scorers_that_are_there_and_pairs_in_any_form() -> None:
    bm25 = fit_scorer("bm25", [pair.text for pair in PAIRS])
    rows = [{"qid": pair.query_id, "question": pair.query, "answer": pair.text, "label": pair.label} for pair in PAIRS]
    found = compare(iter(PAIRS), iter(rows), systems=["trans-lm", bm25, bm25], measures="P@1")
    assert [row.system for row in found.rows] == ["trans_lm", "bm25", "bm25 2"]
    assert found.rows[1].values == found.rows[2].values
    assert repr(found).startswith("Comparison(P@1: trans_lm 1.0000, bm25 1")
    assert found.to_html().startswith("<!doctype html>")
    with refused("wrong_type", "expected", "7"):
        compare(PAIRS, PAIRS, systems=[7])  # type: ignore[list-item]


def test_what_cannot_be(tmp_path: Path) -> None:
    with refused("unknown_name", "system", "'bert'", "mv_lstm"):
        compare(PAIRS, PAIRS, systems=["bert"])
    with refused("unknown_name", "measure", "'FOO'"):
        compare(PAIRS, PAIRS, systems=["bm25"], measures=["FOO"])
    with refused("no_data", "nothing"):
        compare(PAIRS, PAIRS, systems=[])
    (tmp_path / "bm25").mkdir()
    (tmp_path / "bm25" / "matcher.json").touch()
    with refused("exists", "already"):
        check_systems(["bm25"], tmp_path)
    assert check_systems(["bm25"], tmp_path, resume=True) == [System("bm25", "bm25")]
