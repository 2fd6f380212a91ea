"""Cells that a sheet would run: guarded in TSV and CSV files, the same again when they are read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.data.formats import read_pairs, write_pairs
from matchloom.data.formats.sheet_guard import guarded, unguarded
from matchloom.data.formats.understood import understand, write_with_columns
from matchloom.types import Pair

PAIR = Pair('=HYPERLINK("http://example.org")', "@SUM(A1:A9) is no -1", 1.0, "-q", "+t", "=g")


@pytest.mark.parametrize("name", ["p.tsv", "p.csv"])
def test_no_written_cell_starts_as_a_formula(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_pairs(path, [PAIR])
    line = path.read_text().splitlines()[1]
    cells = line.split("\t") if name == "p.tsv" else [cell.strip('"') for cell in line.split('","')]
    assert all(cell.startswith("'") for cell in cells[:5])
    assert list(read_pairs(path)) == [PAIR]


@pytest.mark.parametrize("name", ["p.jsonl", "p.json", "p.parquet"])
def test_other_formats_keep_cells_as_they_are(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_pairs(path, [PAIR])
    assert b"'=" not in path.read_bytes()
    assert list(read_pairs(path)) == [PAIR]


def test_own_columns_are_guarded_too(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    write_with_columns(path, [(Pair("q", "a"), {"phone": "+1 555 01", "formula": "=1+1", "=name": "x"})])
    assert path.read_text() == "query\ttext\tphone\tformula\t'=name\nq\ta\t+1 555 01\t'=1+1\tx\n"
    assert understand(path).own == ["phone", "formula", "=name"]


@given(st.text(alphabet="'=+-@a1 .,"))
def test_what_is_guarded_is_read_as_it_was(cell: str) -> None:
    assert unguarded(guarded(cell)) == cell
    assert unguarded(cell) == cell or cell.startswith("'")


@pytest.mark.parametrize("sign", "=+-@\uff1d\uff0b\uff0d\uff20")
def test_every_sign_that_a_sheet_runs(sign: str) -> None:
    for cell in (f"{sign}1+cmd|' /C calc'!A0", f" \t{sign}x", f"'{sign}x"):
        assert guarded(cell) == f"'{cell}"
        assert unguarded(guarded(cell)) == cell
