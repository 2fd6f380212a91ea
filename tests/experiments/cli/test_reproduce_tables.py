"""`matchloom reproduce TABLE`, `all` and `--list`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.reproduction import tables
from tests.cli.conftest import Run, error_of
from tests.experiments.reproduction.conftest import data, paper

__all__ = ["data", "paper"]  # fixtures

OURS = Path(tables.__file__).parent / "tables"


def test_a_table_is_run_and_shown(run: Run, tmp_path: Path) -> None:
    result = run("reproduce", "colours", "--out", tmp_path / "out", "--only", "Random", "--seeds", "1,2", "--seeds", 4)
    assert result.code == 0, result.err
    assert "colours: 3 runs, about 2 s on the project's machine." in result.err
    assert "Random, seed 4: development P@1 " in result.err
    assert "Colours of cloth\nlists of four\n" in result.out
    (row,) = (line.split() for line in result.out.splitlines() if line.startswith("Random"))
    assert row[-5:] == ["3", "0.0", "0.250", "/", "0.500"]
    again = run("reproduce", "colours", "--out", tmp_path / "out", "--only", "Random", "--seeds", "1,2,4")
    assert again.out == result.out
    assert "3 runs, done already" in again.err


def test_all_writes_one_page(run: Run, tmp_path: Path, data: Path) -> None:
    result = run("reproduce", "all", "--data", data, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    assert result.out == f"The page is {tmp_path / 'out' / 'results.md'}.\n"
    page = (tmp_path / "out" / "results.md").read_text(encoding="utf-8")
    assert "## Colours of cloth" in page
    assert "## Cloth that matches" in page
    assert "The threshold was chosen on the development pairs" in page
    assert "### Trials of colours" in page
    assert page.index("Spearman") < page.index("Cloth here is not the paper's.")


def test_all_leaves_out_what_has_no_data_and_a_smoke_run_makes_no_page(run: Run, tmp_path: Path) -> None:
    result = run("reproduce", "all", "--data", tmp_path, "--out", tmp_path / "out", "--fast")
    assert result.code == 0, result.err
    assert f"cloth is left out: {tmp_path} does not hold cloth." in result.err
    assert not (tmp_path / "out" / "results.md").exists()
    assert sorted(path.name for path in (tmp_path / "out").glob("*.json")) == [
        "colours.fast.json",
        "trials_colours.fast.json",
    ]


def test_the_list_says_what_is_needed_and_there(run: Run, tmp_path: Path) -> None:
    rows = {line.split()[0]: line for line in run("reproduce", "--list", "--data", tmp_path).out.splitlines() if line}
    assert "Weaver, Table 1" in rows["colours"]
    assert "none needed" in rows["colours"]
    assert rows["colours"].split()[-7:] == ["4", "5", "3", "min", "+", "2", "rows"]
    assert f"cloth (not in {tmp_path})" in rows["cloth"]
    assert rows["cloth"].split()[-1] == "unknown"


def test_what_cannot_be_is_told_in_one_line(run: Run, tmp_path: Path) -> None:
    def error(*given: object) -> str:
        return error_of(run("reproduce", *given))

    known = "choose one of cloth, colours, trials_colours, or lcs, or all"
    assert error("table3") == f"table 'table3' is unknown; {known}"
    assert error("../tables/colours") == f"table '../tables/colours' is unknown; {known}"
    assert error() == "name a TABLE: one that --list shows, all, or lcs"
    assert error("all") == "all needs --data DIR, the folder that holds the data sets; --list shows which"
    assert error("all", "--data", tmp_path / "none") == f"--data {tmp_path / 'none'} is no folder"
    out = ("--out", tmp_path / "out")
    assert error("cloth", *out) == "cloth needs --data DIR, a folder that holds cloth"
    assert error("cloth", *out, "--data", tmp_path) == f"cloth needs the folder cloth in {tmp_path}, which is not there"
    assert not (tmp_path / "out").exists()
    rows = "Random; BM25; Net; Net, half"
    told = f"no row of colours is named 'Knot' or has it in its name; its rows: {rows}"
    assert error("colours", "--only", "Knot") == told
    assert error("colours", "--seeds", "1,two") == "--seeds 'two': expected whole numbers, such as 0,1,2"
    assert error("colours", "--seeds", ",") == "--seeds ',': expected whole numbers, such as 0,1,2"
    assert error("colours", "--epochs", 3) == "--epochs cannot be used with colours; it is for lcs"
    assert error("lcs", "--data", tmp_path) == "--data cannot be used with lcs; it is for tables"
    assert error("all", "--only", "Net") == "--only names a row of one table; give that table in place of all"


def test_a_folder_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = error_of(run("reproduce", "colours", "--only", "BM25", "--out", tmp_path / "file"))
    assert said.startswith(str(tmp_path / "file"))
    (tmp_path / "colours.json").write_text('{"systems": {')
    assert "is cut off" in error_of(run("reproduce", "colours", "--out", tmp_path))


def test_a_row_that_fails_is_told_at_the_end(run: Run, tmp_path: Path, paper: Path) -> None:
    path = paper / "colours.toml"
    path.write_text(path.read_text().replace('model = "bm25"', 'model = "soft_coverage"'))
    result = run("reproduce", "colours", "--out", tmp_path / "out", "--only", "BM25")
    assert error_of(result) == "1 run failed, as said above; the others are done"
    assert "BM25, seed 0 failed: soft_coverage needs word vectors" in result.err


@pytest.mark.slow
def test_a_smoke_run_of_a_table_of_the_package(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "TABLES", OURS)
    result = run("reproduce", "pydocs", "--fast", "--only", "_mlp", "--out", tmp_path)
    assert result.code == 0, result.err
    assert "P@1" not in result.out
    done = json.loads((tmp_path / "pydocs.fast.json").read_text())
    assert set(done["systems"]) == {"nbow_mlp", "cnn_mlp"}
    assert done["sizes"]["test"] == 200
