from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
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
    assert rows[0]["label"] == "1"  # as the file has it
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
        assert list(rows[4])[:-1] == ["query", "text"]
        assert rows[4]["query"] == "a b c"
        assert rows[4]["text"] == "[bold]x[/] 😀"


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
    for name in ("s.xml", "s.parquet.gz"):
        assert "scores are written as .tsv" in error_of(
            run("score", "random", corpus / "test.tsv", "--out", tmp_path / name)
        )
    missing = tmp_path / "none" / "s.tsv"
    assert "create it first" in error_of(run("score", "random", corpus / "test.tsv", "--out", missing))


OWN = {
    "Ticket": ["7", "8"],
    "question": ["a", 'b,"c"'],
    "mood": ["[x]", ""],
    "answer": ["d", "e"],
    "label": ["-1", "?"],
}


# Each format is read once and written once.
@pytest.mark.parametrize(
    ("source", "target"),
    [("tsv", "parquet"), ("csv", "tsv"), ("jsonl", "csv"), ("json", "jsonl"), ("parquet", "json"), ("tsv", "tsv")],
)
def test_the_users_own_columns_stay(run: Run, source: str, target: str, tmp_path: Path) -> None:
    given, out = tmp_path / f"in.{source}", tmp_path / f"out.{target}"
    rows = [dict(zip(OWN, values, strict=True)) for values in zip(*OWN.values(), strict=True)]
    if source in ("tsv", "csv"):
        with given.open("w", encoding="utf-8", newline="") as file:
            quoted = {"quoting": csv.QUOTE_NONE, "quotechar": None} if source == "tsv" else {}
            writer = csv.writer(file, delimiter="\t" if source == "tsv" else ",", lineterminator="\n", **quoted)  # type: ignore[arg-type]
            writer.writerows([list(OWN), *(row.values() for row in rows)])
    elif source == "parquet":
        pyarrow.parquet.write_table(pyarrow.table(OWN), given)
    else:
        lines = [json.dumps(row) for row in rows]
        given.write_text("\n".join(lines) if source == "jsonl" else f"[{','.join(lines)}]", encoding="utf-8")
    result = run("score", "overlap", given, "--out", out)
    assert result.code == 0, result.err
    if target == "parquet":
        found = pyarrow.parquet.read_table(out).to_pylist()
    elif target in ("tsv", "csv"):
        with out.open(encoding="utf-8", newline="") as file:
            kind = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if target == "tsv" else {}
            found = list(csv.DictReader(file, **kind))  # type: ignore[arg-type]
    else:
        text = out.read_text(encoding="utf-8")
        found = json.loads(text) if target == "json" else [json.loads(line) for line in text.splitlines()]
    assert [list(row) for row in found] == [[*OWN, "score"]] * 2
    assert [{name: row[name] for name in OWN} for row in found] == rows
    assert all(float(row["score"]) == 0 for row in found)


def test_values_keep_their_kinds_and_a_second_score_its_own_name(run: Run, tmp_path: Path) -> None:
    rows = [{"n": 1, "query": "a", "text": "a", "more": {"x": [1, None]}}, {"query": "b", "text": "a", "n": None}]
    given = tmp_path / "in.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    first, second = tmp_path / "1.jsonl", tmp_path / "2.parquet"
    assert run("score", "overlap", given, "--out", first).code == 0
    found = [json.loads(line) for line in first.read_text(encoding="utf-8").splitlines()]
    assert [{**row, "score": None} for row in found] == [{**row, "score": None} for row in rows]
    assert run("score", "bm25", first, "--out", second).code == 0
    table = pyarrow.parquet.read_table(second)
    assert table.column_names == ["n", "query", "text", "more", "score", "score_bm25"]
    assert table.column("n").to_pylist() == [1, None]
    assert table.column("more").to_pylist() == ['{"x": [1, null]}', None]
    ragged = tmp_path / "r.jsonl"
    ragged.write_text("".join(json.dumps(row) + "\n" for row in rows[::-1]), encoding="utf-8")
    assert "row 2 has the column 'more', which the first has not; write .jsonl" in error_of(
        run("score", "bm25", ragged, "--out", tmp_path / "r.csv")
    )
    assert not (tmp_path / "r.csv").exists()


def test_half_a_character_is_refused_with_its_place(run: Run, tmp_path: Path) -> None:
    given = tmp_path / "in.json"
    given.write_text('[{"query": "a \\ud800", "text": "a"}]', encoding="utf-8")
    assert "object 1: this is no JSON (an escape is half a character" in error_of(run("score", "bm25", given))


def test_a_file_that_is_bad_further_down_leaves_no_output(run: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("query\ttext\na\tb\nonly one\n")
    assert "line 3" in error_of(run("score", "random", pairs, "--out", tmp_path / "s.tsv"))
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]
