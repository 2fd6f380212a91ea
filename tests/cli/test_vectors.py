from __future__ import annotations

from pathlib import Path

from matchloom.text.vectors import read_vectors
from tests.cli.conftest import Run, error_of


def test_vectors_are_trained_and_cover_their_own_text(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.txt.gz"
    given = (corpus / "train.tsv", corpus / "right.tsv", "--dimensions", 7, "--epochs", 2)
    result = run("vectors", *given, "--out", out)
    assert result.code == 0, result.err
    vectors = read_vectors(out)
    assert vectors.dimensions == 7
    assert {"loom", "making", "who"} <= set(vectors.words)  # words of both files and both sides
    assert "100.0% of " in result.out
    first = out.read_bytes()
    assert run("vectors", *given, "--out", out).code == 0
    assert out.read_bytes() == first
    assert run("vectors", *given, "--seed", 1, "--out", out).code == 0
    assert out.read_bytes() != first


def test_check_reports_what_is_missing(run: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("query\ttext\nloom loom loom mill\tloom cloth\n")
    vectors = tmp_path / "glove.txt"
    vectors.write_text("loom 1 0\ncorn 0 1\n")
    result = run("vectors", pairs, "--check", vectors)
    assert result.code == 0, result.err
    assert "66.7% of 6" in result.out  # loom stands four times among six words
    assert "33.3% of 3" in result.out
    assert "cloth, mill" in result.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["glove.txt", "pairs.tsv"]


def test_rare_words_are_left_out(run: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("query\ttext\nloom cloth\tloom corn\n")
    assert run("vectors", pairs, "--out", tmp_path / "v.txt", "--min-count", 2, "--dimensions", 3).code == 0
    assert read_vectors(tmp_path / "v.txt").words == ["loom"]
    assert "lower min_count" in error_of(run("vectors", pairs, "--out", tmp_path / "v.txt", "--min-count", 9))


def test_out_or_check(run: Run, corpus: Path, tmp_path: Path) -> None:
    assert "give either --out FILE" in error_of(run("vectors", corpus / "train.tsv"))
    both = run("vectors", corpus / "train.tsv", "--out", tmp_path / "v", "--check", tmp_path / "v")
    assert "give either --out FILE" in error_of(both)
    bad = tmp_path / "bad.txt"
    bad.write_text("loom 1 0\nmill 1\n")
    assert f"{bad}, line 2" in error_of(run("vectors", corpus / "train.tsv", "--check", bad))
