"""Files with any names for their columns, and labels that are none, in every command that reads pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import THINGS, Run, error_of, write_tsv

NAMED = ["--columns", "query=Betreff,text=Antwort,label=gut,query_id=nr"]


@pytest.fixture
def odd(corpus: Path, tmp_path: Path) -> Path:
    """The test lists under names that nobody could guess."""
    lines = (corpus / "test.tsv").read_text(encoding="utf-8").splitlines()
    return write_tsv(tmp_path / "odd.tsv", ["nr\twer\tBetreff\tAntwort\tgut", *lines[1:]])


def test_every_command_takes_the_names_of_columns(run: Run, odd: Path, corpus: Path, tmp_path: Path) -> None:
    archive = tmp_path / "a"
    commands = {
        "split": ("split", odd, "--out", tmp_path / "s"),
        "vectors": ("vectors", odd, "--out", tmp_path / "v.txt", "--dimensions", 4, "--epochs", 1),
        "mine": ("mine", odd, "--out", tmp_path / "m.tsv", "--count", 2),
        "trans-lm": ("trans-lm", odd, "--out", tmp_path / "t"),
        "evaluate": ("evaluate", "bm25", odd, "--no-baselines"),
        "score": ("score", "bm25", odd),
        "compare": ("compare", odd, "--test", odd, "--system", "bm25", "--out", tmp_path / "c"),
        "rank": ("rank", "bm25", "making soap", odd),
        "index": ("index", archive, odd, "--store", "lance"),
        "index files": ("index", tmp_path / "f", odd),
        "add": ("add", tmp_path / "f", odd),
        "tune": ("tune", archive, odd),
        "explain": ("explain", "bm25", "soap", "oil", "--collection", odd),
    }
    for name, words in commands.items():
        assert "'query' (or question" in error_of(run(*words)), name
        done = run(*words, *NAMED)
        assert done.code == 0, (name, done.err)


@pytest.mark.parametrize("label", ["-1", "0.8"])
def test_labels_that_are_none_are_refused_where_they_count(run: Run, label: str, tmp_path: Path) -> None:
    rows = [f"making {name}\t{text}\t{label if name == 'soap' else 1}" for name, text in THINGS.items()]
    pairs = write_tsv(tmp_path / "p.tsv", ["query\ttext\tlabel", *rows])
    for words in (
        ("mine", pairs, "--out", tmp_path / "m.tsv"),
        ("trans-lm", pairs, "--out", tmp_path / "t"),
        ("evaluate", "bm25", pairs),
        ("compare", pairs, "--test", pairs, "--system", "bm25", "--out", tmp_path / "c"),
        ("index", tmp_path / "a", pairs),
        ("train", pairs, "--out", tmp_path / "r"),
    ):
        assert f"line 6: label is '{label}'" in error_of(run(*words)), words
    for words in (  # where nobody looks at them
        ("vectors", pairs, "--out", tmp_path / "v.txt", "--dimensions", 4, "--epochs", 1),
        ("score", "bm25", pairs),
        ("rank", "bm25", "soap", pairs),
    ):
        assert run(*words).code == 0, words
    split = run("split", pairs, "--out", tmp_path / "s")
    assert split.code == (0 if label == "0.8" else 2)  # grades are for training with squared_error


def test_files_without_a_header_stay_so_where_labels_do_not_count(run: Run, tmp_path: Path) -> None:
    pairs = write_tsv(tmp_path / "p.tsv", [f"making {name}\t{text}\t1" for name, text in THINGS.items()])
    ranked = json.loads(run("rank", "bm25", "oil and lye", pairs, "--json").out)
    assert ranked["ranking"][0]["text"] == THINGS["soap"]
    assert run("vectors", pairs, "--out", tmp_path / "v.txt", "--dimensions", 4, "--epochs", 1).code == 0
