"""`matchloom encoders`: the list, adding, and a matcher that needs no training."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchloom.encoders import library
from tests.cli.conftest import Run
from tests.encoders.making import write_folder

pytest.importorskip("tokenizers")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MATCHLOOM_ENCODERS", raising=False)
    monkeypatch.setattr(library, "distributions", list)


def test_lists_adds_and_uses(run: Run, tmp_path: Path) -> None:
    assert "No encoder is found in MATCHLOOM_ENCODERS" in run("encoders").out
    folder = write_folder(tmp_path / "mine")
    card = "---\nlicense: mit\ndatasets:\n" + "".join(f"- set-{n}\n" for n in range(8)) + "- S2ORC\n---\n"
    (folder / "README.md").write_text(card)
    added = run("encoders", "add", folder)
    assert (added.code, added.err) == (0, "")
    listed = run("encoders").out
    assert listed in added.out
    assert listed.splitlines() == [
        "mine",
        "  2 layers, 8 numbers a word, 0 MB; from your cache",
        "  licence mit",
        "  trained on set-0, set-1, set-2, set-3, set-4, set-5, and 3 more",
        "  it has seen texts of citations (S2ORC): figures on citations are too good",
    ]
    used = run("encoders", "use", "mine", "--out", tmp_path / "matcher")
    assert used.out == f"The matcher is in {tmp_path / 'matcher'}; nothing of it was trained.\n"
    texts = tmp_path / "texts.txt"
    texts.write_text("open the file\nsort the list\n")
    ranked = run("rank", tmp_path / "matcher", "sort a list", texts)
    assert ranked.code == 0
    assert {"open the file", "sort the list"} == {line.split("  ")[-1] for line in ranked.out.splitlines()[1:3]}
    small = run("encoders", "use", "mine", "--out", tmp_path / "less", "--size", 3, "--texts", texts)
    assert small.code == 0
    assert run("rank", tmp_path / "less", "sort a list", texts).code == 0
    again = run("encoders", "use", "mine", "--out", tmp_path / "matcher")
    assert (again.code, "already holds a matcher" in again.err) == (2, True)


def test_a_folder_that_cannot_be_used_is_named_and_the_others_listed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATCHLOOM_ENCODERS", str(tmp_path))
    write_folder(tmp_path / "good")
    (write_folder(tmp_path / "bad") / "config.json").write_text('{"model_type": "t5"}')
    found = run("encoders")
    assert found.code == 0
    assert found.out.startswith("good\n")
    assert "bad cannot be used: model_type 't5' is none of those" in found.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["remove", "x"], "'remove' is unknown; 'matchloom encoders' lists"),
        (["add"], "which encoder? Expected 'matchloom encoders add ENCODER'"),
        (["use", "x"], "'use' needs --out FOLDER for the matcher"),
        (["--out", "x"], "--out belongs to 'use'"),
        (["use", "x", "--out", "x", "--size", "3"], "--size and --texts belong to 'use', and to each other"),
        (["--size", "3", "--texts", "x"], "--size and --texts belong to 'use', and to each other"),
        (["use", "nothing", "--out", "x"], "encoder 'nothing' is not found (none is there yet)"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(run: Run, arguments: list[str], told: str) -> None:
    found = run("encoders", *arguments)
    assert (found.code, found.out) == (2, "")
    assert told in found.err
    assert found.err.count("\n") == 1
