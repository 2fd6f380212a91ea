"""The file of results, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.reproduction.results import add_run, read_results, run_name
from matchloom.types import MatchloomError


def test_runs_are_added_by_row_and_seed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for seed, figure in ((2, 0.1), (0, 0.2), (2, 0.3)):
        add_run(path, "Net", {"seed": seed, "figure": figure}, {"protocol": "ours"})
    done = read_results(path)
    assert done["systems"]["Net"] == [{"seed": 0, "figure": 0.2}, {"seed": 2, "figure": 0.3}]
    assert (done["format"], done["protocol"]) == (1, "ours")


def test_a_name_is_that_of_one_file() -> None:
    assert run_name("ARC-I/II, d = 5", 3) == "ARC-I-II, d = 5, seed 3"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"systems": {"Net": [{"se', "is cut off, or no file of results"),
        ("", "is cut off, or no file of results"),
        ("[]", "is no file of results"),
        ('{"systems": {"Net": [{"P@1": 0.5}]}}', "is no file of results"),
        ('{"systems": {"Net": 3}}', "is no file of results"),
        ('{"format": 2, "rows": []}', "was written by a newer matchloom (format 2)"),
        ('{"format": "two", "systems": []}', "is no file of results"),
    ],
)
def test_a_file_that_is_none_is_told_in_one_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(MatchloomError) as error:
        read_results(path)
    assert str(error.value) == f"{path} {said}; move it away, or choose another --out"
