"""`matchloom compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from matchloom.cli import main
from matchloom.cli.compare import Box, _free_place
from matchloom.matcher import Matcher
from matchloom.types import MatchloomError
from tests.cli.conftest import Run, error_of

SYSTEMS = ["--system", "random", "--system", "bm25", "--system", "lstm_rnn", "--system", "m2s_net"]


@pytest.fixture(scope="module")
def compared(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    out = tmp_path_factory.mktemp("runs") / "all"
    given = ["compare", str(corpus / "train.tsv"), "--dev", str(corpus / "dev.tsv"), "--test", str(corpus / "test.tsv")]
    return [*given, "--out", str(out), "--epochs", "1", "--dimensions", "8"], out


def test_table_picture_and_matchers(run: Run, compared: tuple[list[str], Path], tmp_path: Path, corpus: Path) -> None:
    given, out = compared
    result = run(*given, *SYSTEMS, "--plot", tmp_path / "all.png")
    assert result.code == 0, result.err
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0] == ["system", "P@1", "RR", "p", "against", "random", "parameters", "minutes", "pairs/s"]
    assert [line[0] for line in lines[1:5]] == ["random", "bm25", "lstm_rnn", "m2s_net"]
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
    # The figures are those of the commands that measure one system.
    for name in ("lstm_rnn", "m2s_net"):
        alone = json.loads(run("evaluate", out / name, corpus / "test.tsv", "--measures", "RR", "--json", "-").out)
        row = next(line for line in lines if line[:1] == [name])
        assert float(row[2]) == pytest.approx(alone["values"]["RR"], abs=5e-5)
    own = Matcher.load(out / "lstm_rnn").model
    counted = sum(x.numel() for name, x in own.named_parameters() if name != "encoder.embedding.weight")
    assert int(lines[3][4].replace(",", "")) == counted


def test_finished_runs_are_not_trained_again(run: Run, compared: tuple[list[str], Path]) -> None:
    given, out = compared
    if not (out / "lstm_rnn" / "matcher.json").exists():
        assert main([*given, "--system", "lstm_rnn"]) == 0
    before = (out / "lstm_rnn" / "weights.safetensors").stat().st_mtime_ns
    assert "already holds a matcher; resume its run" in error_of(run(*given, "--system", "lstm_rnn"))
    again = run(*given, "--system", "lstm_rnn", "--resume", "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)[0]["system"] == "lstm_rnn"
    assert (out / "lstm_rnn" / "weights.safetensors").stat().st_mtime_ns == before


def test_one_that_fails_does_not_take_the_others_along(
    run: Run, compared: tuple[list[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given, _ = compared

    def broken(*_: object) -> None:
        raise MatchloomError("no luck")

    monkeypatch.setattr("matchloom.models.cntn.CNTN.encode", broken)
    systems = ["--system", "bm25", "--system", "cntn", "--system", "nbow_mlp", "--system", "bm25"]
    result = run(*given, "--out", tmp_path / "some", *systems)
    assert result.code == 2
    assert [line.split()[0] for line in result.out.splitlines()[1:3]] == ["bm25", "nbow_mlp"]
    assert "cntn failed: no luck" in result.err
    assert result.err.splitlines()[-1].endswith("1 of 3 systems failed and are not in the table: cntn")
    alone = run(*given, "--out", tmp_path / "one", "--system", "cntn")
    assert error_of(alone) == "every system failed; cntn: no luck"


def test_names_in_the_picture_do_not_touch() -> None:
    names: list[Box] = []
    for n in range(12):
        names.append(_free_place(10 + n % 3, 50 + n % 2, 30 + n, names))
        assert not any(names[-1].touches(other) for other in names[:-1])
    assert names[0] == (10, 50, 40, 60)


def test_minutes_count_what_was_trained_before(run: Run, compared: tuple[list[str], Path]) -> None:
    given, out = compared
    if not (out / "lstm_rnn" / "matcher.json").exists():
        assert main([*given, "--system", "lstm_rnn"]) == 0
    log = out / "lstm_rnn" / "log.jsonl"
    log.write_text(json.dumps({**json.loads(log.read_text()), "seconds": 600.0}) + "\n")
    again = json.loads(run(*given, "--system", "lstm_rnn", "--resume", "--json").out)
    assert 10 < again[0]["minutes"] < 11


def test_what_is_there_already_is_compared_as_it_is(
    run: Run, corpus: Path, trained: Path, tmp_path: Path, compared: tuple[list[str], Path]
) -> None:
    translations = tmp_path / "t"
    assert run("trans-lm", corpus / "right.tsv", "--out", translations).code == 0
    given = ["compare", corpus / "train.tsv", "--test", corpus / "test.tsv", "--json"]
    systems = ("bm25", trained, translations, "trans-lm")
    done = run(*given, *(word for one in systems for word in ("--system", one)))
    assert done.code == 0, done.err
    rows = {row["system"]: row for row in json.loads(done.out)}
    assert list(rows) == ["bm25", str(trained), str(translations), "trans_lm"]
    alone = json.loads(run("evaluate", trained, corpus / "test.tsv", "--measures", "RR", "--json", "-").out)
    assert rows[str(trained)]["values"]["RR"] == pytest.approx(alone["values"]["RR"])
    assert rows[str(trained)]["parameters"]
    assert "--out FOLDER is missing" in error_of(run(*given, "--system", "lstm_rnn"))


def test_arguments_are_set_for_those_that_take_them(run: Run, corpus: Path, tmp_path: Path) -> None:
    given = ["compare", corpus / "train.tsv", "--test", corpus / "test.tsv", "--dev", corpus / "dev.tsv"]
    given += ["--out", tmp_path, "--epochs", 1, "--dimensions", 8, "--vectors", "random"]
    systems = ["--system", "bm25", "--system", "lstm_rnn", "--system", "nbow_mlp"]
    done = run(*given, *systems, "--set", "hidden=6", "--set", "nbow_mlp.units=5")
    assert done.code == 0, done.err
    assert Matcher.load(tmp_path / "lstm_rnn").arguments["hidden"] == 6
    assert Matcher.load(tmp_path / "nbow_mlp").arguments["units"] == 5
    for setting, told in (
        ("colour=red", "no model that is compared takes it"),
        ("cntn.units=3", "cntn is not compared"),
        ("lstm_rnn.hidden=x", "hidden is a whole number"),
        ("lstm_rnn.x=1", "expected NAME=VALUE; lstm_rnn takes"),
    ):
        assert told in error_of(run(*given, *systems, "--resume", "--set", setting))


def test_what_cannot_be(run: Run, compared: tuple[list[str], Path]) -> None:
    given, _ = compared
    assert error_of(run(*given, "--system", "bert")).startswith("system 'bert' is unknown; choose among mv_lstm")
    assert "measure 'FOO' is unknown" in error_of(run(*given, "--system", "lstm_rnn", "--measures", "FOO", "--resume"))
    assert "the picture a.gif must end in .png, .svg or .pdf" in error_of(
        run(*given, "--system", "bm25", "--plot", "a.gif")
    )
