"""`matchloom corpus pydocs`, and what is said where the folder experiments is not there."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import matchloom
from matchloom import Pair, read_pairs
from tests.cli.conftest import NAMES, THINGS, Run

SOURCE = Path(matchloom.__file__).parent


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


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The package as a wheel has it, in a folder of its own."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "matchloom").symlink_to(SOURCE)
    return tmp_path


def matchloom_of(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of the package in that folder, run there."""
    command = [sys.executable, "-P", "-m", "matchloom", *words]
    told = {"PYTHONPATH": str(folder / "packages")}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=told)


@pytest.mark.parametrize("words", [("reproduce", "lcs"), ("reproduce", "--help"), ("corpus", "trecqa", "--out", "x")])
def test_outside_of_a_clone_one_line_says_where_experiments_are(installed: Path, words: tuple[str, ...]) -> None:
    done = matchloom_of(installed, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("matchloom: error: ")
    assert done.stderr.count("\n") == 1
    assert "experiments/" in done.stderr
    assert "clone" in done.stderr


def test_outside_of_a_clone_pydocs_is_listed(installed: Path) -> None:
    done = matchloom_of(installed, "corpus")
    assert done.returncode == 0
    assert "pydocs" in done.stdout
    assert "trecqa" not in done.stdout
    assert "experiments/" in done.stderr


def test_a_folder_of_experiments_is_taken_from_where_one_is(installed: Path) -> None:
    (installed / "experiments").symlink_to(SOURCE.parents[1] / "experiments")
    done = matchloom_of(installed, "corpus")
    assert done.returncode == 0
    assert "trecqa" in done.stdout
