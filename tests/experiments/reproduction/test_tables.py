"""The tables as they are read, the package's own among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.reproduction import tables
from experiments.reproduction.rows import resolved
from experiments.reproduction.tables import read_table, table_names
from experiments.reproduction.tasks import TASKS
from matchloom.comparison import System, check_systems
from matchloom.models import MODELS
from matchloom.types import MatchloomError

OURS = Path(tables.__file__).parent / "tables"


@pytest.mark.parametrize("name", sorted(path.stem for path in OURS.glob("*.toml")))
def test_every_table_of_the_package_can_be_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "TABLES", OURS)
    table = read_table(name)
    assert table.task in TASKS
    check_systems([System(row.name, row.model) for row in table.rows])
    for row in table.rows:
        if row.model in MODELS:
            resolved(row, table, 0)  # refuses unknown settings
        assert row.seeds
    if table.is_trial:
        assert not any(row.test for row in table.rows)


def test_a_table_as_it_is_read() -> None:
    assert table_names() == ["cloth", "colours", "trials_colours"]
    table = read_table("colours")
    assert [row.seeds for row in table.rows] == [(0, 1), (0,), (0,), (0,)]
    assert table.rows[2].published == (0.5, 0.7)
    assert table.folders == ()
    assert read_table("cloth").folders == ("cloth",)
    assert read_table("trials_colours").is_trial
    assert [row.name for row in table.rows_named("Net")] == ["Net"]
    assert [row.name for row in table.rows_named("et")] == ["Net", "Net, half"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("t_test = true", "t_tests = true", "'t_tests' is no setting of a PaperTable"),
        ("baselines = true", "baseline = true", "'baseline' is no setting of a Row"),
        ('title = "Colours of cloth"', "", "missing 1 required positional argument: 'title'"),
        ('name = "BM25"', 'name = "Net"', "rows need names, each another"),
        ('own = "Net"', 'own = "Knot"', "'Knot' is no row of it"),
        (
            'task = "colours"',
            'task = "colours"\nkind = "triples"',
            "kind 'triples' is unknown; choose one of lists, pairs",
        ),
        ('task = "colours"', 'task = "colours"\nkind = "pairs"', "measures of pairs are among AP, AUC, accuracy, F1"),
    ],
)
def test_what_is_wrong_with_a_table_is_told_in_one_line(paper: Path, old: str, new: str, said: str) -> None:
    path = paper / "colours.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(MatchloomError) as error:
        read_table("colours")
    assert str(error.value).startswith("colours.toml: ")
    assert said in str(error.value)
