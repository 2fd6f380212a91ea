from __future__ import annotations

import json
from pathlib import Path

from matchloom import read_pairs
from tests.cli.conftest import Run, error_of

FAQ = "Frage;Antwort;Thema\nWie zahle ich?;Mit Karte.;Geld\nWie bezahle ich?;mit Karte.;Geld\n;;\nkaputt\n"


def test_it_shows_what_it_understood_and_writes_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "faq.csv").write_text(FAQ)
    result = run("import", tmp_path / "faq.csv", "--out", tmp_path / "faq.tsv")
    assert result.code == 0, result.err
    for words in (
        "csv",
        "query = Frage, text = Antwort",
        "Thema",
        "2 pairs: 1 answers, 2 questions",
        "line 5",
        "line 4",
    ):
        assert words in result.out
    assert (tmp_path / "faq.tsv").read_text().splitlines()[:2] == [
        "query\ttext\tThema",
        "Wie zahle ich?\tMit Karte.\tGeld",
    ]
    assert [pair.text for pair in read_pairs(tmp_path / "faq.tsv")] == ["Mit Karte.", "mit Karte."]


def test_as_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "faq.csv").write_text(FAQ)
    result = run("import", tmp_path / "faq.csv", "--json")
    told = json.loads(result.out)
    assert (told["format"], told["pairs"], told["left_out"], told["own_columns"]) == ("csv", 2, 2, ["Thema"])
    assert told["columns"] == {"query": "Frage", "text": "Antwort"}
    assert [one["first"] for one in told["reasons"]] == [["line 4"], ["line 5"]]


def test_what_is_no_source_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(b"x")
    assert "logo.png" in error_of(run("import", tmp_path / "logo.png"))
    assert "none.csv" in error_of(run("import", tmp_path / "none.csv"))
    (tmp_path / "faq.csv").write_text(FAQ)
    assert "faq.xlsx" in error_of(run("import", tmp_path / "faq.csv", "--out", tmp_path / "faq.xlsx"))


def test_a_text_from_outside_drives_no_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "faq.csv").write_text("q,a,\x1b[31mred\n\x1b]0;title\x07why?,because,\x1b[2J\n")
    assert "\x1b" not in run("import", tmp_path / "faq.csv").out
