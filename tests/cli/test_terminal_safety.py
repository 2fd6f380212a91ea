"""Names, columns, ids and texts that would drive a terminal do not, whatever command shows them."""

from __future__ import annotations

import json
import os
import pty
import re
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchloom.basics.progress import track
from matchloom.basics.screen import escaped_json, printable, printable_table, screen
from matchloom.cli import main
from tests.cli.conftest import SMALL, Run, write_tsv

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202egnp\u2066\x85x\x08\x0c"
DRIVES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def drives(shown: str) -> list[str]:
    """What could drive a terminal; colours of ours are none."""
    return DRIVES.findall(re.sub(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[1A|\x1b\[2K|\r", "", shown))


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Pairs whose every cell, and whose name, is hostile."""
    rows = [f"query_id\ttext_id\tquery\ttext\tlabel\tmore{HOSTILE}"]
    for n in range(12):
        for right in (1, 0):
            ids = f"q{n}{HOSTILE}\tt{n}-{right}{HOSTILE}"
            rows.append(f"{ids}\tquestion {n} {HOSTILE} loom\tanswer {n * right} {HOSTILE} weave\t{right}\tz")
    return write_tsv(tmp_path / f"p{HOSTILE.replace('/', '')}.tsv", rows)


def commands(pairs: Path, folder: Path) -> list[list[str]]:
    out, archive = str(folder / f"out{HOSTILE}"), str(folder / "archive")
    return [
        ["split", str(pairs), "--out", out + "s"],
        ["vectors", str(pairs), "--out", out + ".txt", "--min-count", "1"],
        ["mine", str(pairs), "--out", out + ".tsv", "--count", "1", "--top", "5"],
        ["trans-lm", str(pairs), "--out", out + ".words"],
        ["train", str(pairs), "--out", out, *SMALL, "--epochs", "1"],
        ["evaluate", "bm25", str(pairs)],
        ["evaluate", out, str(pairs), "--compare-to", HOSTILE],
        ["score", "bm25", str(pairs)],
        ["score", HOSTILE, str(pairs)],
        ["rank", "bm25", f"loom {HOSTILE}", str(pairs), "--explain"],
        ["rank", "bm25", f"loom {HOSTILE}", str(pairs), "--json"],
        ["explain", "bm25", f"loom {HOSTILE}", f"weave loom {HOSTILE}"],
        ["index", out + ".archive", str(pairs), "--store", "lance"],  # LanceDB takes no such name
        ["index", archive, str(pairs), "--store", "lance"],
        ["search", archive, f"loom {HOSTILE}", "--explain"],
        ["search", archive, f"loom {HOSTILE}", "--json"],
        ["index", out + ".faq", str(pairs)],
        ["add", out + ".faq", "--question", HOSTILE, "--answer", f"loom {HOSTILE}", "--id", HOSTILE],
        ["search", out + ".faq", f"loom {HOSTILE}", "--explain"],
        ["search", out + ".faq", HOSTILE, "--where", HOSTILE],
        ["remove", out + ".faq", HOSTILE, "nobody" + HOSTILE],
        ["refit", out + ".faq"],
        ["doctor", out + ".faq"],
        ["tune", archive, str(pairs)],
        ["doctor", archive],
        ["doctor", str(pairs), HOSTILE],
        ["models", HOSTILE],
        [HOSTILE],
        ["score", f"--{HOSTILE}"],
        ["rank", "bm25", "x", HOSTILE],
        ["compare", str(pairs), "--models", HOSTILE],
        ["fit", str(pairs), "--out", out + ".fit", "--columns", f"query={HOSTILE}"],
    ]


def read_all(leader: int) -> bytes:
    """What was written to the other end, which is closed: a terminal hands it over in parts, as it comes to it."""
    found = b""
    with os.fdopen(leader, "rb", buffering=0) as terminal, suppress(OSError):  # Linux ends with an error
        while some := terminal.read(65536):
            found += some
    return found


def on_a_terminal(arguments: list[str]) -> str:
    """What a command shows on a terminal, both streams."""
    leader, follower = pty.openpty()
    kept = (sys.stdout, sys.stderr)
    with os.fdopen(follower, "w", encoding="utf-8") as terminal:
        sys.stdout = sys.stderr = terminal
        try:
            main(arguments)
        finally:
            sys.stdout, sys.stderr = kept
    return read_all(leader).decode("utf-8", "replace")


def test_no_command_lets_them_through(run: Run, hostile: Path, tmp_path: Path) -> None:
    for arguments in commands(hostile, tmp_path):
        result = run(*arguments)
        assert "Traceback" not in result.err, arguments
        assert not drives(result.err), arguments
        if arguments[0] != "score":  # whose output in a pipe is data
            assert not drives(result.out), arguments
        if "--json" in arguments:
            assert result.code == 0, result
            assert HOSTILE in (json.loads(result.out).get("query") or json.loads(result.out)["question"]), result


def test_nor_on_a_terminal(hostile: Path, tmp_path: Path) -> None:
    for arguments in (
        ["score", "bm25", str(hostile)],
        ["rank", "bm25", f"loom {HOSTILE}", str(hostile), "--explain"],
        ["evaluate", "bm25", str(hostile)],
        ["score", "bm25", str(tmp_path / HOSTILE)],
    ):
        shown = on_a_terminal(arguments)
        assert shown
        assert not drives(shown), arguments


def test_scores_in_a_file_are_the_data_itself(run: Run, hostile: Path, tmp_path: Path) -> None:
    assert run("score", "bm25", hostile, "--out", tmp_path / "s.jsonl").code == 0
    first = json.loads((tmp_path / "s.jsonl").read_bytes().split(b"\n")[0])
    assert first["query"] == f"question 0 {HOSTILE} loom"


def test_a_bar_shows_brackets_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        assert list(track([1, 2], f"Reading [/red] {HOSTILE}")) == [1, 2]
    shown = read_all(leader).decode("utf-8", "replace")
    assert "[/red]" in shown
    assert not drives(shown)


@given(st.text(st.characters()))
def test_every_text_becomes_printable(text: str) -> None:
    for made in (printable(text), printable_table(text).replace("\t", "").replace("\n", "")):
        assert not [letter for letter in made if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")]
    assert json.loads(escaped_json(json.dumps(text, ensure_ascii=False))) == text
    printer = screen(width=50)
    with printer.capture() as captured:
        printer.print(text)
    assert not drives(captured.get())
