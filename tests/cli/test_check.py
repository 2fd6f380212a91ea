from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run, error_of

FAQ = "question\tanswer\nWhere are you?\tIn Ghent.\nwhere are you?\tIn Bruges.\n"
FAQ += "When?\t<b>At</b> nine.\nWhen?\tAt ten.\n"


def test_finds_are_lines(run: Run, tmp_path: Path) -> None:
    (tmp_path / "faq.tsv").write_text(FAQ)
    result = run("check", tmp_path / "faq.tsv", "--most", "1")
    assert result.code == 0, result.err
    assert result.out.splitlines() == [
        "2 x one question, several answers",
        "  line 2, line 3: Where are you? -> In Ghent. | In Bruges.",
        "  and 1 more",
        "1 x HTML tags in a text",
        "  line 4: <b>At</b> nine.",
    ]


def test_a_page_a_fixed_file_and_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "faq.tsv").write_text(FAQ)
    written = ["--html", tmp_path / "c.html", "--fix", tmp_path / "clean.csv"]
    told = json.loads(run("check", tmp_path / "faq.tsv", *written, "--json").out)
    assert told["counts"] == {"contradiction": 2, "html": 1}
    assert (told["fixed"], told["left"]) == ({"html": 1}, 4)
    assert (tmp_path / "clean.csv").read_text().splitlines()[3] == "When?,At nine."
    assert "line 2, line 3" in (tmp_path / "c.html").read_text()
    told = json.loads(run("check", tmp_path / "faq.tsv", "--test", tmp_path / "faq.tsv", "--json").out)
    assert told["counts"]["test_in_training"] == 4


def test_wrong_files_are_one_line(run: Run, tmp_path: Path) -> None:
    assert "none.tsv" in error_of(run("check", tmp_path / "none.tsv"))
    (tmp_path / "faq.tsv").write_text(FAQ)
    assert "c.pdf" in error_of(run("check", tmp_path / "faq.tsv", "--fix", tmp_path / "c.pdf"))


def test_fit_tells_the_first_lines(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"what is {name} for?\tfor {name}\nhow is {name} made?\tfor {name}\n" for name in "abcdefgh")
    (tmp_path / "faq.tsv").write_text(FAQ + rows)
    result = run("fit", tmp_path / "faq.tsv", "--out", tmp_path / "faq", "--encoder", "none", "--minutes", "0.5")
    assert result.code == 0, result.err
    assert "2 x one question, several answers (line 2, line 3, ...)" in result.err
