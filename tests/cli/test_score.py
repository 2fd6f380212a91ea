from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import matchloom.cli.score
from matchloom import Matcher, read_pairs
from matchloom.lexical import BM25
from tests.cli.conftest import Run, error_of


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


def test_a_matchers_scores_are_those_of_python(
    run: Run, corpus: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matchloom.cli.score, "_CHUNK", 5)  # 36 pairs in eight pieces
    result = run("score", trained, corpus / "test.tsv")
    assert result.code == 0, result.err
    pairs = list(read_pairs(corpus / "test.tsv"))
    rows = table(result.out)
    assert [(row["query_id"], row["text_id"], row["text"], row["label"]) for row in rows] == [
        (pair.query_id, pair.text_id, pair.text, str(int(pair.label or 0))) for pair in pairs
    ]
    expected = Matcher.load(trained).score(pairs)
    np.testing.assert_allclose([float(row["score"]) for row in rows], expected, atol=1e-5)
    assert len({row["score"] for row in rows}) > 12


def test_bm25_counts_words_in_the_file_or_in_a_collection(run: Run, corpus: Path, tmp_path: Path) -> None:
    pairs = list(read_pairs(corpus / "test.tsv"))
    own = BM25.fit({pair.text for pair in pairs}).score(pairs)
    scored = tmp_path / "scored.jsonl"
    assert run("score", "bm25", corpus / "test.tsv", "--out", scored).code == 0
    rows = [json.loads(line) for line in scored.read_text(encoding="utf-8").splitlines()]
    np.testing.assert_allclose([row["score"] for row in rows], own, rtol=1e-6)
    assert rows[0]["label"] == 1.0
    collection = tmp_path / "texts.txt"
    collection.write_text("for you\nfor me\nbread\n")
    other = BM25.fit(["for you", "for me", "bread"]).score(pairs)
    result = run("score", "bm25", corpus / "test.tsv", "--collection", collection)
    np.testing.assert_allclose([float(row["score"]) for row in table(result.out)], other, rtol=1e-6)


def test_unlabelled_one_word_and_empty_texts(run: Run, trained: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "odd.jsonl"
    odd = [("bread", ""), ("", "bread"), ("?!", "..."), ("bread", "bread"), ("a\tb\nc", "[bold]x[/] 😀")]
    pairs.write_text("".join(json.dumps({"query": q, "text": t}) + "\n" for q, t in odd))
    for scorer in (trained, "bm25", "overlap", "random"):
        result = run("score", scorer, pairs)
        assert result.code == 0, result.err
        rows = table(result.out)
        assert len(rows) == 5
        assert all(np.isfinite(float(row["score"])) for row in rows)
        assert rows[4]["query"] == "a b c"
        assert rows[4]["text"] == "[bold]x[/] 😀"
        assert {row["label"] for row in rows} == {""}


def test_soft_coverage_needs_vectors(run: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("query\ttext\nloom\tmill cloth\n")
    assert "needs word vectors" in error_of(run("score", "soft_coverage", pairs))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("loom 1 0\nmill 3 4\n")
    result = run("score", "soft_coverage", pairs, "--vectors", vectors)
    assert float(table(result.out)[0]["score"]) == pytest.approx(0.6)  # the cosine of (1, 0) and (3, 4)


def test_the_file_decides_the_format(run: Run, corpus: Path, tmp_path: Path) -> None:
    assert run("score", "random", corpus / "test.tsv", "--out", tmp_path / "s.tsv.gz").code == 0
    with gzip.open(tmp_path / "s.tsv.gz", "rt") as file:
        assert len(table(file.read())) == 36
    assert ".tsv or .jsonl" in error_of(run("score", "random", corpus / "test.tsv", "--out", tmp_path / "s.xml"))
    missing = tmp_path / "none" / "s.tsv"
    assert "create it first" in error_of(run("score", "random", corpus / "test.tsv", "--out", missing))


def test_a_file_that_is_bad_further_down_leaves_no_output(run: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("query\ttext\na\tb\nonly one\n")
    assert "line 3" in error_of(run("score", "random", pairs, "--out", tmp_path / "s.tsv"))
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]
