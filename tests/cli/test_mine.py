from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from matchloom import Pair, read_pairs
from tests.cli.conftest import THINGS, Run, error_of


def lists(path: Path) -> dict[str, list[Pair]]:
    found = defaultdict(list)
    for pair in read_pairs(path):
        found[pair.query].append(pair)
    return found


@pytest.mark.parametrize("source", ["bm25", "query", "random", "matcher"])
def test_each_positive_gets_its_negatives(run: Run, corpus: Path, trained: Path, tmp_path: Path, source: str) -> None:
    out = tmp_path / "mined.tsv"
    chosen = trained if source == "matcher" else source
    result = run("mine", corpus / "right.tsv", "--out", out, "--count", 3, "--source", chosen, "--top", 6)
    assert result.code == 0, result.err
    assert "12 positive pairs, each with 3 negatives" in result.out
    found = lists(out)
    assert set(found) == {f"making {name}" for name in THINGS}
    for query, pairs in found.items():
        assert [pair.text for pair in pairs if pair.label == 1] == [THINGS[query.removeprefix("making ")]]
        assert len({pair.text for pair in pairs}) == len(pairs) == 4


def test_the_pool_is_where_negatives_come_from(run: Run, corpus: Path, tmp_path: Path) -> None:
    pool = tmp_path / "pool.txt"
    pool.write_text("one wrong text\n\nanother wrong text\n")
    out = tmp_path / "mined.jsonl"
    assert run("mine", corpus / "right.tsv", "--out", out, "--count", 2, "--pool", pool).code == 0
    assert {pair.text for pair in read_pairs(out) if pair.label == 0} == {"one wrong text", "another wrong text"}


def test_pairs_with_label_0_are_left_out_and_it_is_said(run: Run, corpus: Path, tmp_path: Path) -> None:
    result = run("mine", corpus / "test.tsv", "--out", tmp_path / "m.tsv", "--count", 1, "--top", 5)
    assert result.code == 0, result.err
    assert "24 of 36 pairs have label 0" in result.err
    assert len(list(read_pairs(tmp_path / "m.tsv"))) == 24


def test_bad_requests(run: Run, corpus: Path, tmp_path: Path) -> None:
    right, out = corpus / "right.tsv", tmp_path / "m.tsv"
    assert "expected 50" in error_of(run("mine", right, "--out", out, "--count", 50))
    assert "count <= top" in error_of(run("mine", right, "--out", out, "--top", 2))
    assert "--source no-such-folder is neither bm25, cosine, query, random nor the folder of a matcher" in error_of(
        run("mine", right, "--out", out, "--source", "no-such-folder")
    )
    wrong = tmp_path / "wrong.tsv"
    wrong.write_text("query\ttext\tlabel\na\tb\t0\n")
    assert "no pair with a label above 0" in error_of(run("mine", wrong, "--out", out))
    assert "create it first" in error_of(run("mine", right, "--out", tmp_path / "none" / "m.tsv"))
    assert not out.exists()
