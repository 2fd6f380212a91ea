"""`matchloom encoders`: the list, adding, and a matcher that needs no training."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from matchloom import Matcher
from matchloom.encoders import library
from tests.cli.conftest import Run
from tests.encoders.making import PIECES, chinese_json, tokenizer_json, write_folder

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
        "  2 layers, 8 numbers per word, 0 MB; from your cache",
        "  licence mit",
        "  trained on set-0, set-1, set-2, set-3, set-4, set-5, and 3 more",
        "  its training data holds texts of citations (S2ORC): figures on citations are too high",
    ]
    used = run("encoders", "use", "mine", "--out", tmp_path / "matcher")
    assert used.out == f"The matcher is in {tmp_path / 'matcher'}; it is not trained.\n"
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


def test_an_untrained_matcher_has_the_tokenizer_that_was_asked_for(run: Run, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "chinese", tokenizer=chinese_json())
    assert run("encoders", "use", folder, "--out", tmp_path / "m", "--tokenizer", "chinese").code == 0
    assert Matcher.load(tmp_path / "m").tokenizer.kind == "chinese"
    wrong = run("encoders", "use", folder, "--out", tmp_path / "n", "--tokenizer", "klingon")
    assert (wrong.code, "klingon" in wrong.err) == (2, True)
    assert not (tmp_path / "n").exists()


DAMAGES = ["missing", "cut off", "foreign", "another shape", "a pickle", "another tokenizer", "a pointer"]


def damage(folder: Path, how: str) -> None:
    weights, config = folder / "model.safetensors", folder / "config.json"
    if how == "missing":
        (folder / "tokenizer.json").unlink()
    elif how == "cut off":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif how == "foreign":
        weights.write_bytes(b"PNG, or whatever it is")
    elif how == "another shape":
        config.write_text(config.read_text().replace('"hidden_size": 8', '"hidden_size": 16'))
    elif how == "a pickle":
        weights.write_bytes(pickle.dumps({"weights": [1.0]}))
    elif how == "another tokenizer":
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(pieces=[*PIECES, "more"])))
    else:
        weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")


@pytest.mark.parametrize("how", DAMAGES)
def test_no_command_takes_a_damaged_folder(run: Run, tmp_path: Path, corpus: Path, how: str) -> None:
    folder = write_folder(tmp_path / "mine")
    damage(folder, how)
    out = tmp_path / "out"
    for arguments in (
        ["encoders", "add", folder],
        ["encoders", "use", folder, "--out", out],
        ["train", corpus / "train.tsv", "--dev", corpus / "dev.tsv", "--encoder", folder, "--out", out],
    ):
        found = run(*arguments)
        assert (found.code, found.out) == (2, ""), arguments
        assert str(folder) in found.err
        assert found.err.splitlines()[-1].startswith("matchloom: error: ")
        assert not [line for line in found.err.splitlines()[:-1] if "Traceback" in line]
        assert not list(out.glob("*"))
    assert run("encoders").out.startswith("No encoder is found")  # nothing of it was kept


def test_that_a_text_is_cut_is_told(run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run("encoders", "use", write_folder(tmp_path / "mine"), "--out", tmp_path / "m")
    texts = tmp_path / "texts.txt"
    texts.write_text("open the file " * 30 + "\nsort the list\n")
    assert run("rank", tmp_path / "m", "sort a list", texts).code == 0
    assert [record.getMessage() for record in caplog.records] == [
        "a text of 42 pieces was cut to its first 40, and so are all longer texts"
    ]


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
