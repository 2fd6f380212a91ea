"""The card of a folder says what its manifests say."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from matchloom import Collection, Pair
from matchloom.artifact import KINDS
from matchloom.cli import main
from matchloom.fitting import Fitted
from matchloom.lexical import TransLM
from matchloom.runs.card import ABOUT, card, write_card
from tests.fitting.samples import small_report
from tests.refusing import refused

PAIRS = [Pair(f"how do I {verb}", answer) for verb, answer in (("print", "Choose Print."), ("pay", "Ask sales."))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Fitted(Collection.fit(PAIRS), small_report(), "answers").save(tmp_path / "faq")
    return tmp_path / "faq"


def test_a_fit_has_figures_with_intervals_and_limits(folder: Path) -> None:
    text = card(folder)
    _, front, body = text.split("---\n", 2)
    assert yaml.safe_load(front)["library_name"] == "matchloom"
    report = small_report()
    for one in report.systems:
        if one.test and not one.error:
            assert one.name in body
    assert " to " in body.partition("## Figures")[2]
    assert "## Limits" in body
    assert "SHA-256" in body
    assert "Choose Print." not in text, "no text of the data"


def test_every_kind_is_described(tmp_path: Path) -> None:
    assert set(ABOUT) == set(KINDS)
    TransLM.fit([pair.text for pair in PAIRS], PAIRS).save(tmp_path / "words")
    assert "translation" in card(tmp_path / "words")
    with refused("missing", tmp_path):
        card(tmp_path)


def test_a_readme_of_somebody_else_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["card", str(folder)]) == 0
    assert main(["card", str(folder)]) == 0, "its own is written again"
    assert Fitted.load(folder).report.chosen == small_report().chosen, "the folder is as whole as before"
    (folder / "README.md").write_text("mine", encoding="utf-8")
    with refused("exists", "overwrite=True"):
        write_card(folder)
    assert main(["card", str(folder), "--print"]) == 0
    assert capsys.readouterr().out.endswith(card(folder))
    assert write_card(folder, overwrite=True).read_text(encoding="utf-8") == card(folder)
