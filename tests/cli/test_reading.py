from __future__ import annotations

from pathlib import Path

from matchloom.cli.reading import parse_columns, read_all, read_texts
from matchloom.types import Pair
from tests.refusing import refused


def test_columns_of_an_option() -> None:
    assert parse_columns(None) is None
    assert parse_columns("query=Subject line, text=reply,label=") == {
        "query": "Subject line",
        "text": "reply",
        "label": "",
    }
    for wrong in ("", "query", "=reply", "query=a,query=b", "query=a,,text=b"):
        with refused("bad_value", "expected"):
            parse_columns(wrong)


def test_pairs_are_read_by_the_option(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("Subject;Reply;Good\na;b;0.5\n")
    found = read_all(path, columns="query=Subject,text=Reply,label=Good", graded=True, require_label=True)
    assert found[0][:3] == Pair("a", "b", 0.5)[:3]
    with refused("bad_row", "label", "'0.5'"):
        read_all(path, columns="query=Subject,text=Reply,label=Good")
    with refused("unknown_name", "'answer'"):
        read_all(path, columns="answer=Reply")


def test_texts_of_a_plain_file_are_its_lines(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("one\ttext\nanother\n\none\ttext\n")
    assert read_texts(tmp_path / "t.txt") == ["one\ttext", "another"]
    (tmp_path / "t.tsv").write_text("query\ttext\tlabel\na\tb\t.8\n")
    assert read_texts(tmp_path / "t.tsv") == ["b"]
