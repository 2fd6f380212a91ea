from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape, unescape
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from matchloom.data.formats import write_pairs
from matchloom.evaluation import Report, evaluate, measure
from matchloom.lexical import BM25, RandomScorer, fit_scorer
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair
from tests.evaluation.test_baselines import five_candidates
from tests.refusing import refused

SPACE = Tokenizer("whitespace")


def printed(report: Report, width: int = 100) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(report)
    return console.file.getvalue()  # type: ignore[attr-defined]


def bm25(pairs: Sequence[Pair]) -> BM25:
    return BM25.fit([pair.text for pair in pairs], tokenizer=SPACE)


def test_a_sound_result() -> None:
    pairs = five_candidates()
    scorer = bm25(pairs)
    report = evaluate(scorer, pairs)
    assert report.name == "bm25"
    assert report.values == measure(pairs, scorer.score(pairs)).values
    assert report.baselines[3].measured.values == report.values  # its own baseline: same words, same texts
    assert report.warnings == []
    assert (
        report.per_query["7"]["AP"]
        == measure(
            [p for p in pairs if p.query_id == "7"], scorer.score([p for p in pairs if p.query_id == "7"])
        ).values["AP"]
    )
    assert all(report.low[name] <= report.values[name] <= report.high[name] for name in report.values)


def test_it_does_not_depend_on_the_order_of_pairs() -> None:
    pairs = five_candidates(lists=20)
    first, second = evaluate(bm25(pairs), pairs).to_dict(), evaluate(bm25(pairs), pairs[::-1]).to_dict()
    for result in (first, second):
        result["baselines"] = [baseline for baseline in result["baselines"] if baseline["name"] != "input order"]
        result["warnings"] = []
    assert first == second


def test_constant_scores_on_lists_with_positives_first() -> None:
    pairs = sorted(five_candidates(), key=lambda pair: -(pair.label or 0))
    report = evaluate(np.zeros(len(pairs)), pairs, measures=["P@1", "AP"], tokenizer=SPACE)
    assert report.name == "given scores"
    assert report.values["P@1"] < 0.4
    assert (report.low["P@1"], report.high["P@1"]) == (0, 1)
    assert report.warnings[0] == "all scores are equal: this scorer ranks nothing"
    assert report.warnings[1].startswith(
        "ties matter (60 questions have some): their order makes P@1 anywhere from 0.0000 to 1.0000, AP anywhere"
    )
    assert report.warnings[2].startswith(f"this scorer's P@1 {report.values['P@1']:.4f} is below ")
    assert "bm25 1.0000 (p < 0.001)" in report.warnings[2]
    assert report.warnings[3].startswith(
        "the input lists positives first: its order alone gets P@1 1.0000 where chance is"
    )
    assert len(report.warnings) == 4


def test_a_leak_is_told() -> None:
    pairs = five_candidates(positive_words=5)
    leaks = [w for w in evaluate(bm25(pairs), pairs).warnings if "leak" in w]
    assert len(leaks) == 1
    assert leaks[0].startswith(
        "the candidate lists leak: without the question, text length (shorter first) gets AP 1.0000 where"
    )


def test_one_list_says_nothing_of_leaks() -> None:
    pairs = sorted(five_candidates(lists=1, positive_words=5), key=lambda pair: -(pair.label or 0))
    report = evaluate([5, 4, 3, 2, 1], pairs, tokenizer=SPACE)
    assert not [warning for warning in report.warnings if "leak" in warning or "positives first" in warning]
    assert "shorter first: too few to tell" in printed(report)
    assert [probe["leaks"] for probe in report.to_dict()["probes"]] == [False]


def test_pairs_may_be_tuples_dicts_or_a_file(tmp_path: Path) -> None:
    pairs = [pair._replace(query_id="") for pair in five_candidates(lists=12)]
    scores = np.arange(len(pairs))
    expected = evaluate(scores, pairs, tokenizer=SPACE).to_dict()
    write_pairs(tmp_path / "p.jsonl", pairs)
    dicts = [{"sentence1": pair.query, "sentence2": pair.text, "label": pair.label} for pair in pairs]
    for source in ([pair[:3] for pair in pairs], dicts, str(tmp_path / "p.jsonl")):
        assert evaluate(scores, source, tokenizer=SPACE).to_dict() == expected
    with refused("bad_row", "item 2", "1", "0"):
        evaluate([0, 0], [("a", "b", 1), ("a", "c", -1)])


def test_the_subset_is_told_and_scores_follow_it() -> None:
    pairs = [
        *five_candidates(lists=4),
        Pair("all good", "w1", 1, query_id="p"),
        Pair("all bad", "w1", 0, query_id="n"),
    ]
    scores = np.arange(len(pairs))
    report = evaluate(scores, pairs, tokenizer=SPACE)
    assert report.values == measure(pairs[:-2], scores[:-2]).values
    assert "4 of 6 questions (with a positive and a negative; left out 1 without" in printed(report)
    assert evaluate(scores, pairs, subset="all", tokenizer=SPACE).values == measure(pairs, scores).values
    with refused("bad_labels", "questions", "1"):
        evaluate([0.0], [pairs[-1]])


def test_without_floors() -> None:
    pairs = five_candidates(lists=5)
    report = evaluate(bm25(pairs), pairs, baselines=False)
    assert (report.baselines, report.probes) == ([], [])
    assert "random" not in printed(report)


def test_printed_in_a_hundred_columns() -> None:
    pairs = five_candidates(positive_words=5)
    text = printed(evaluate(RandomScorer(1), pairs, tokenizer=SPACE))
    assert max(map(len, text.splitlines())) <= 100
    rows = {line.split("  ")[0]: line.rstrip() for line in text.splitlines()}
    assert rows["input order"].endswith("as listed")
    assert "shorter first: above chance" in rows["text length"]
    assert "another list's query: at chance" in rows["queries shuffled"]
    assert "60 of 60 questions (with a positive and a negative; none left out), 300 pairs" in text
    assert "! this scorer's AP" in text


def test_json_is_plain_and_whole() -> None:
    pairs = [*five_candidates(lists=5), Pair("none", "w1", 0, query_id="n")]
    report = evaluate(bm25(pairs), pairs, measures=["AP", "Accuracy"], subset="all", seed=4)
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["values"] == report.values
    assert data["per_query"]["n"] == {"AP": 0.0, "Accuracy": None}
    assert data["subset"]["without_positive"] == 1
    assert [probe["name"] for probe in data["probes"]] == ["queries shuffled", "text length"]
    assert data["seed"] == 4
    assert evaluate(bm25(pairs), pairs, measures=["AP", "Accuracy"], subset="all", seed=4).to_dict() == report.to_dict()


def test_bad_scores_are_refused() -> None:
    pairs = five_candidates(lists=2)
    with refused("bad_value", "10"):
        evaluate(np.full(10, np.nan), pairs)
    with refused("mismatch", "10"):
        evaluate(np.zeros(3), pairs)


def test_it_says_in_one_line_what_it_is() -> None:
    pairs = five_candidates(lists=5)
    report = evaluate(bm25(pairs), pairs, measures=["P@1"])
    assert repr(report) == f"Report(bm25: P@1 {report.values['P@1']:.4f}; 5 questions)"
    assert repr(replace(report, warnings=["ties", "leaks"])).endswith("5 questions, 2 warnings)")


def test_a_notebook_shows_the_rows_of_the_terminal() -> None:
    pairs = five_candidates(positive_words=5)
    report = replace(evaluate(RandomScorer(1), pairs, tokenizer=SPACE), name="<mine> & [red]")
    source, terminal = report.to_html(), printed(report, width=200)
    assert escape(source) in report._repr_html_()
    assert ">&lt;mine&gt; &amp; [red]</th>" in source
    assert "<mine> & [red]" in terminal
    assert source.count("<tbody") == 3
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in re.findall(r"<tr[^>]*>(.*?)</tr>", source)[1:]]
    assert len(cells) > 5
    lines = terminal.splitlines()
    for row in cells:
        words = unescape(re.sub("<.*?>", "", " ".join(row))).split()
        assert any(line.split() == words for line in lines), words
    for line in [report.subset.line(), *report.warnings]:
        assert escape(line) in source


def test_scorers_by_name_are_those_that_are_fitted_on_the_pairs_own_texts() -> None:
    pairs = [Pair("red loom", "a red loom", 1, "q"), Pair("red loom", "a mill", 0, "q")]
    for name in ("bm25", "bm25_stemmed", "overlap", "random"):
        named = evaluate(name, iter(pairs), measures="P@1")
        fitted = evaluate(fit_scorer(name, ["a mill", "a red loom"]), pairs, measures=["P@1"])
        assert (named.name, named.values, named.low) == (fitted.name, fitted.values, fitted.low)
    assert evaluate("bm25", pairs).to_html().startswith("<!doctype html>")


@pytest.mark.parametrize("wrong", [None, 7, b"bm25", object(), dict])
def test_what_is_no_scorer_is_told_in_one_line(wrong: object) -> None:
    with refused("wrong_type", "scorer"):
        evaluate(wrong, [("a", "b", 1), ("a", "c", 0)])  # type: ignore[arg-type]
    with refused("unknown_name", "scorer", "'bm52'"):
        evaluate("bm52", [("a", "b", 1), ("a", "c", 0)])
