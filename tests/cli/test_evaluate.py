from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import pytest

from matchloom import Matcher, read_pairs
from tests.cli.conftest import Run, error_of


def test_the_figures_are_right(run: Run, corpus: Path, trained: Path) -> None:
    pairs = list(read_pairs(corpus / "test.tsv"))
    lists = defaultdict(list)
    for pair, score in zip(pairs, Matcher.load(trained).score(pairs), strict=True):
        lists[pair.query_id].append((float(score), pair.label))
    ranks = [1 + sum(other[0] > best[0] for other in found) for found in lists.values() for best in found if best[1]]
    result = run("evaluate", trained, corpus / "test.tsv", "--measures", "P@1,RR", "--json", "-")
    assert result.code == 0, result.err
    plain = json.loads(result.out)
    assert plain["values"]["P@1"] == pytest.approx(sum(rank == 1 for rank in ranks) / 12)
    assert plain["values"]["RR"] == pytest.approx(sum(1 / rank for rank in ranks) / 12)
    assert {baseline["name"] for baseline in plain["baselines"]} >= {"random", "bm25", "bm25_stemmed", "overlap"}
    assert "probes" in plain


def test_the_table(run: Run, corpus: Path, trained: Path) -> None:
    result = run("evaluate", trained, corpus / "test.tsv")
    assert result.code == 0, result.err
    assert result.out.splitlines()[0].split() == ["AP", "RR", "P@1", "nDCG@10"]
    for row in ("mv_lstm", "random", "input order", "bm25_stemmed", "text length", "queries shuffled"):
        assert any(line.startswith(row) for line in result.out.splitlines()), row
    assert "12 of 12 questions" in result.out
    assert "positives first" in result.out  # as the test file lists them
    assert max(map(len, result.out.splitlines())) <= 100
    plain = run("evaluate", trained, corpus / "test.tsv", "--no-baselines")
    assert "bm25" not in plain.out


def test_files_of_a_run_come_back_with_the_same_figure(run: Run, corpus: Path, trained: Path, tmp_path: Path) -> None:
    ranked, judged, report, single = (tmp_path / name for name in ("a.run", "a.qrels", "a.json", "a.tsv"))
    files = ("--run", ranked, "--qrels", judged, "--json", report, "--per-query", single)
    result = run("evaluate", trained, corpus / "test.tsv", "--no-baselines", *files)
    assert result.code == 0, result.err
    first = json.loads(report.read_text(encoding="utf-8"))["values"]
    again = json.loads(run("evaluate", ranked, corpus / "test.tsv", "--json", "-").out)
    assert again["values"] == pytest.approx(first)
    audited = json.loads(run("doctor", ranked, judged, "--json").out)
    assert audited[0]["figures"]["as trec_eval"] == pytest.approx(first)
    with single.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) == 12
    assert sum(float(row["RR"]) for row in rows) / 12 == pytest.approx(first["RR"], abs=1e-5)
    assert rows[0]["query"].startswith("tell me about")


def test_against_another(run: Run, corpus: Path, trained: Path) -> None:
    result = run("evaluate", "bm25", corpus / "test.tsv", "--against", trained, "--no-baselines")
    assert result.code == 0, result.err
    assert "difference" in result.out
    plain = json.loads(run("evaluate", "bm25", corpus / "test.tsv", "--against", trained, "--json", "-").out)
    tests, other = plain["against"]["tests"], plain["against"]["values"]
    for name, value in plain["values"].items():
        assert tests[name]["difference"] == pytest.approx(value - other[name])
        assert 0 < tests[name]["p"] <= 1
    same = json.loads(run("evaluate", "bm25", corpus / "test.tsv", "--against", "bm25", "--json", "-").out)
    assert same["against"]["tests"]["AP"] == {"difference": 0.0, "p": 1.0}


def test_subset_tokenizer_vectors_and_collection_are_passed_on(run: Run, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    lines = ["1\tloom\tA loom\t1", "1\tloom\tmill\t0", "2\tcorn\tgrain\t0", "3\tx\ty\t1"]
    pairs.write_text("\n".join(["query_id\tquery\ttext\tlabel", *lines]) + "\n")

    def figures(*more: object) -> dict[str, float]:
        result = run("evaluate", "overlap", pairs, "--measures", "P@1", "--json", "-", *more)
        assert result.code == 0, result.err
        return json.loads(result.out)  # type: ignore[no-any-return]

    assert figures()["subset"]["kept"] == 1  # type: ignore[index]
    assert figures("--subset", "positive")["subset"]["kept"] == 2  # type: ignore[index]
    assert figures("--subset", "all")["subset"]["kept"] == 3  # type: ignore[index]
    assert "subset 'some' is unknown" in error_of(run("evaluate", "bm25", pairs, "--subset", "some"))
    vectors = tmp_path / "v.txt"
    vectors.write_text("loom 1 0\nmill 1 0\n")
    baselines = figures("--vectors", vectors)["baselines"]
    assert "soft_coverage" in {baseline["name"] for baseline in baselines}  # type: ignore[attr-defined, index]
    collection = tmp_path / "texts.txt"
    collection.write_text("a b c\n")
    assert figures("--collection", collection, "--tokenizer", "whitespace")["values"]["P@1"] == 1.0  # type: ignore[index]


def test_a_floor_and_the_scorer_of_its_name_agree(run: Run, corpus: Path, tmp_path: Path) -> None:
    lines = (corpus / "test.tsv").read_text(encoding="utf-8").splitlines()
    pairs = tmp_path / "pairs.tsv"  # the last question has no right text and does not count, but its words do
    pairs.write_text("\n".join([*lines, "odd\ta\tx\tclay clay threads of a loom\t0"]) + "\n", encoding="utf-8")
    for name in ("bm25", "overlap"):
        plain = json.loads(run("evaluate", name, pairs, "--json", "-").out)
        baseline = next(baseline for baseline in plain["baselines"] if baseline["name"] == name)
        assert baseline["values"] == plain["values"]


def test_a_run_must_have_all_pairs_once(run: Run, corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "short.run"
    path.write_text("tel0 Q0 bread 1 0.5 x\n")
    assert "lacks 35 of 36 pairs" in error_of(run("evaluate", path, corpus / "test.tsv"))
    path.write_text("tel0 Q0 bread 1 0.5 x\ntel0 Q0 bread 2 0.4 x\n")
    assert "twice" in error_of(run("evaluate", path, corpus / "test.tsv"))
