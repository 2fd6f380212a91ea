"""`matchloom corpus`: each corpus from a few lines written here in its public format."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from matchloom import Pair, read_pairs
from matchloom.cli.corpus import CORPORA
from tests.cli.conftest import NAMES, THINGS, Run, error_of


def test_without_a_name_all_are_listed(run: Run) -> None:
    result = run("corpus")
    assert result.code == 0
    assert set(CORPORA) <= set(result.out.split())


def test_pydocs_is_written_as_lists_of_five_split_by_group(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        Pair(f"about {name} number {i}", f"{THINGS[name]} and {i}", 1.0, f"{name}.{i}")
        for name in NAMES
        for i in range(8)
    ]
    monkeypatch.setattr("matchloom.cli.corpus.read_pydocs", lambda: made)
    result = run("corpus", "pydocs", "--out", tmp_path / "deep" / "data", "--seed", 3)
    assert result.code == 0, result.err
    assert "Python 3." in result.err
    parts = [list(read_pairs(tmp_path / "deep" / "data" / f"{name}.tsv")) for name in ("train", "dev", "test")]
    assert [len(part) // 25 for part in parts] == [15, 2, 2]  # 96 pairs make 19 groups of five, one is left over
    for part in parts:
        assert set(Counter(pair.query_id for pair in part).values()) == {5}
        assert set(Counter(pair.query_id for pair in part if pair.label == 1).values()) == {1}
    groups = [{pair.group for pair in part} for part in parts]
    assert sum(map(len, groups)) == len(set().union(*groups))
    again = run("corpus", "pydocs", "--out", tmp_path / "other", "--seed", 4)
    assert again.code == 0
    assert (tmp_path / "other" / "test.tsv").read_bytes() != (tmp_path / "deep" / "data" / "test.tsv").read_bytes()


def test_lcs_needs_no_data(run: Run, tmp_path: Path) -> None:
    result = run("corpus", "lcs", "--out", tmp_path)
    assert result.code == 0, result.err
    counts = {name: sum(1 for _ in read_pairs(tmp_path / f"{name}.tsv")) for name in ("train", "dev", "test")}
    assert counts == {"train": 10_000, "dev": 1_000, "test": 1_000}
    assert "10,000" in result.out


def trecqa(folder: Path) -> None:
    (folder / "DEV.tsv").write_text("qid\tquestion\tanswer\tlabel\n1\twho weaves ?\tweavers do\t1\n")


def wikiqa(folder: Path) -> None:
    (folder / "WikiQASent-dev.txt").write_text("who weaves?\tweavers do\t1\nwho weaves?\tmillers do\t0\n")
    (folder / "WikiQASent-dev.ref").write_text("not for us")


def msrp(folder: Path) -> None:
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    (folder / "msr_paraphrase_test.txt").write_text(f"\ufeff{header}1\t10\t11\tone\ttwo\n", encoding="utf-8")
    (folder / "msr_paraphrase_data.txt").write_text("other columns")


def semeval(folder: Path) -> None:
    row = {"qid": "Q1", "q_body": "a loom?", "rid": "Q1_R1", "label": "Relevant", "r_body": "some loom?"}
    (folder / "dev.jsonl").write_text(json.dumps(row) + "\n")


def cqa(folder: Path) -> None:
    with gzip.open(folder / "cqa.tsv.gz", "wt") as file:
        file.write("source\tgroup\tquestion\tanswer\nshop\tp1\twill this loom fit?\tit will fit\n")


def citations(folder: Path) -> None:
    with gzip.open(folder / "papers.jsonl.gz", "wt") as file:
        for name in "ab":
            file.write(json.dumps({"id": name, "title": name, "abstract": f"we weave {name}"}) + "\n")
    (folder / "citations_some.tsv").write_text("a\tb\n")


def insuranceqa(folder: Path) -> None:
    question = {"id": "0", "en": "is rain covered?", "zh": "下雨吗", "domain": "x", "answers": ["1"], "negatives": []}
    for split in ("train", "valid", "test"):
        with gzip.open(folder / f"{split}.jsonl.gz", "wt") as file:
            file.write(json.dumps(question) + "\n")
    for language, text in (("en", "rain is covered"), ("zh", "下雨")):
        with gzip.open(folder / f"answers.{language}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write(f"1\t{text}\n")


def reuters(folder: Path) -> None:
    story = "The weavers of the old town said yesterday evening, that they would take their looms to the fair.\n"
    (folder / "story.txt").write_text(story)


@pytest.mark.parametrize(
    ("name", "write", "expected"),
    [
        ("trecqa", trecqa, {"DEV": ("who weaves ?", "weavers do", 1.0)}),
        ("wikiqa", wikiqa, {"WikiQASent-dev": ("who weaves?", "weavers do", 1.0)}),
        ("msrp", msrp, {"msr_paraphrase_test": ("one", "two", 1.0)}),
        ("semeval", semeval, {"dev": ("a loom?", "some loom?", 1.0)}),
        ("cqa", cqa, {"cqa": ("will this loom fit?", "it will fit", 1.0)}),
        ("citations", citations, {"citations": ("we weave a", "we weave b", 1.0)}),
        (
            "insuranceqa",
            insuranceqa,
            dict.fromkeys(("train", "valid", "test"), ("is rain covered?", "rain is covered", 1.0)),
        ),
        ("insuranceqa_zh", insuranceqa, dict.fromkeys(("train", "valid", "test"), ("下雨吗", "下雨", 1.0))),
        (
            "reuters",
            reuters,
            {
                "reuters": (
                    "The weavers of the old town said yesterday evening",
                    "that they would take their looms to the fair.",
                    1.0,
                )
            },
        ),
    ],
)
def test_a_public_folder_becomes_pairs_files(
    run: Run, tmp_path: Path, name: str, write: Callable[[Path], None], expected: dict[str, tuple[str, str, float]]
) -> None:
    data = tmp_path / "public"
    data.mkdir()
    write(data)
    result = run("corpus", name, "--data", data, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    found = {path.stem: next(read_pairs(path))[:3] for path in (tmp_path / "out").iterdir()}
    assert found == expected


def test_one_file_of_a_corpus_will_do(run: Run, tmp_path: Path) -> None:
    trecqa(tmp_path)
    assert run("corpus", "trecqa", "--data", tmp_path / "DEV.tsv", "--out", tmp_path / "out").code == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["DEV.tsv"]


def test_reuters_reads_an_archive(run: Run, tmp_path: Path) -> None:
    reuters(tmp_path)
    with tarfile.open(tmp_path / "c50.tar.gz", "w:gz") as archive:
        content = (tmp_path / "story.txt").read_bytes()
        member = tarfile.TarInfo("c50/story.txt")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    assert run("corpus", "reuters", "--data", tmp_path / "c50.tar.gz", "--out", tmp_path / "out").code == 0
    assert len(list(read_pairs(tmp_path / "out" / "reuters.tsv"))) == 1


def test_what_is_missing_is_asked_for(run: Run, tmp_path: Path) -> None:
    assert "choose one of pydocs" in error_of(run("corpus", "klingon", "--out", tmp_path))
    assert "--out DIR" in error_of(run("corpus", "pydocs"))
    assert "--data PATH" in error_of(run("corpus", "trecqa", "--out", tmp_path))
    assert "leave out --data" in error_of(run("corpus", "lcs", "--out", tmp_path, "--data", tmp_path))
    assert "*.tsv" in error_of(run("corpus", "trecqa", "--out", tmp_path, "--data", tmp_path))
    assert "none" in error_of(run("corpus", "trecqa", "--out", tmp_path, "--data", tmp_path / "none"))
