from __future__ import annotations

from pathlib import Path

import pytest

from matchloom import read_pairs
from tests.cli.conftest import Run, error_of


@pytest.mark.parametrize(("parts", "names"), [("8,1,1", ["train", "dev", "test"]), ("2,1", ["train", "test"])])
def test_questions_are_parted_and_none_is_lost(
    run: Run, corpus: Path, tmp_path: Path, parts: str, names: list[str]
) -> None:
    result = run("split", corpus / "train.tsv", "--out", tmp_path / "new", "--parts", parts)
    assert result.code == 0, result.err
    split = [list(read_pairs(tmp_path / "new" / f"{name}.tsv")) for name in names]
    assert sorted(pair for part in split for pair in part) == sorted(read_pairs(corpus / "train.tsv"))
    questions = [{pair.query_id for pair in part} for part in split]
    assert [len(ids) for ids in questions] == ([19, 3, 2] if parts == "8,1,1" else [16, 8])  # of 24
    assert len(set().union(*questions)) == 24
    for name, ids in zip(names, questions, strict=True):
        counts = f"{len(ids)} questions, {3 * len(ids)} pairs, {len(ids)} positive"
        assert f"{tmp_path}/new/{name}.tsv: {counts}\n" in result.out


def test_the_seed_decides_and_the_order_of_lines_does_not(run: Run, corpus: Path, tmp_path: Path) -> None:
    head, *body = (corpus / "train.tsv").read_text(encoding="utf-8").splitlines()
    reversed_file = tmp_path / "reversed.tsv"
    reversed_file.write_text("\n".join([head, *body[::-1]]) + "\n", encoding="utf-8")

    def test_ids(path: Path, seed: int) -> set[str]:
        assert run("split", path, "--out", tmp_path, "--seed", seed).code == 0
        return {pair.query_id for pair in read_pairs(tmp_path / "test.tsv")}

    assert test_ids(corpus / "train.tsv", 1) == test_ids(reversed_file, 1)
    assert test_ids(corpus / "train.tsv", 1) != test_ids(corpus / "train.tsv", 2)


def test_the_format_is_kept(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "faq.jsonl.gz"
    import gzip

    with gzip.open(path, "wt") as file:
        file.writelines(f'{{"query": "q{n}", "text": "t"}}\n' for n in range(10))
    assert run("split", path, "--out", tmp_path / "out").code == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["dev.jsonl.gz", "test.jsonl.gz", "train.jsonl.gz"]


def test_bad_parts(run: Run, corpus: Path, tmp_path: Path) -> None:
    for parts in ("8", "a,b", "1,1,1,1", ""):
        message = error_of(run("split", corpus / "train.tsv", "--out", tmp_path, "--parts", parts))
        assert "such as 8,1,1" in message
    assert "above zero" in error_of(run("split", corpus / "train.tsv", "--out", tmp_path, "--parts", "1,0,1"))
    few = tmp_path / "few.tsv"
    few.write_text("query\ttext\na\tb\n")
    assert "give more pairs" in error_of(run("split", few, "--out", tmp_path))


def test_of_a_format_that_is_only_read_the_parts_are_tsv(run: Run, tmp_path: Path) -> None:
    (tmp_path / "faq.md").write_text("".join(f"# what is {n}?\nthe number {n}\n" for n in range(9)))
    assert run("split", tmp_path / "faq.md", "--out", tmp_path / "new", "--parts", "2,1").code == 0
    assert sum(len(list(read_pairs(tmp_path / "new" / f"{name}.tsv"))) for name in ("train", "test")) == 9
