"""`matchloom reproduce lcs`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run, error_of


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matchloom.cli.reproduce.LONGER", (12,))


def test_it_trains_compares_and_draws(run: Run, tmp_path: Path) -> None:
    size = ["--pairs", 300, "--epochs", 2]
    result = run("reproduce", "lcs", *size, "--out", tmp_path / "net", "--plot", tmp_path / "four.png")
    assert result.code == 0, result.err
    assert "10 letters        1,000" in result.out
    assert "12 letters        1,000" in result.out
    programme = result.out.split("(a) dynamic programme\n")[1].splitlines()[:6]
    assert programme[0].split() == list("FACGD")
    assert programme[5].split() == ["E", "0", "1", "2", "2", "[3]"]  # the paper's example: three in common
    assert programme[4].split() == ["D", "0", "1", "2", "2", "[3]"]
    assert "(b) Match-SRNN\n" in result.out
    assert len(result.out.split("(c) its gates: left, top, diagonal\n")[1].splitlines()) == 6
    assert (tmp_path / "four.png").read_bytes().startswith(b"\x89PNG")
    again = run("reproduce", "lcs", "--matcher", tmp_path / "net")
    assert again.code == 0, again.err
    assert again.out == result.out


def test_what_cannot_be(run: Run, trained: Path, tmp_path: Path) -> None:
    assert error_of(run("reproduce", "table3")) == "experiment 'table3' is unknown; choose one of lcs"
    assert error_of(run("reproduce", "lcs", "--first", "A B")).startswith("--first needs 1 to 60 letters")
    assert error_of(run("reproduce", "lcs", "--second", "")).startswith("--second needs 1 to 60 letters")
    assert error_of(run("reproduce", "lcs", "--plot", "a.gif")) == "the picture a.gif must end in .png, .svg or .pdf"
    assert "holds no network of this experiment" in error_of(run("reproduce", "lcs", "--matcher", trained))
    assert "is not a folder" in error_of(run("reproduce", "lcs", "--matcher", tmp_path / "none"))
