"""`matchloom compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from matchloom.cli import main
from matchloom.matcher import Matcher
from tests.cli.conftest import Run, error_of

SYSTEMS = ["--system", "random", "--system", "bm25", "--system", "lstm_rnn", "--system", "m2s_net"]


@pytest.fixture(scope="module")
def compared(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    out = tmp_path_factory.mktemp("runs") / "all"
    given = ["compare", str(corpus / "train.tsv"), "--dev", str(corpus / "dev.tsv"), "--test", str(corpus / "test.tsv")]
    return [*given, "--out", str(out), "--epochs", "1", "--dimensions", "8"], out


def test_table_picture_and_matchers(run: Run, compared: tuple[list[str], Path], tmp_path: Path, corpus: Path) -> None:
    given, out = compared
    result = run(*given, *SYSTEMS, "--picture", tmp_path / "all.png")
    assert result.code == 0, result.err
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0] == ["system", "P@1", "RR", "p", "to", "random", "parameters", "minutes", "pairs/s"]
    assert [line[0] for line in lines[1:5]] == ["random", "bm25", "lstm_rnn", "m2s_net"]
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
    # The figures are those of the commands that measure one system.
    for name in ("lstm_rnn", "m2s_net"):
        alone = json.loads(run("evaluate", out / name, corpus / "test.tsv", "--measures", "RR", "--json", "-").out)
        row = next(line for line in lines if line[:1] == [name])
        assert float(row[2]) == pytest.approx(alone["values"]["RR"], abs=5e-5)
    own = Matcher.load(out / "lstm_rnn").model
    counted = sum(x.numel() for name, x in own.named_parameters() if name != "embedding.weight")
    assert int(lines[3][4].replace(",", "")) == counted


def test_finished_runs_are_not_trained_again(run: Run, compared: tuple[list[str], Path]) -> None:
    given, out = compared
    if not (out / "lstm_rnn" / "matcher.json").exists():
        assert main([*given, "--system", "lstm_rnn"]) == 0
    before = (out / "lstm_rnn" / "weights.safetensors").stat().st_mtime_ns
    assert "holds a matcher already; add --resume" in error_of(run(*given, "--system", "lstm_rnn"))
    again = run(*given, "--system", "lstm_rnn", "--resume", "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)[0]["system"] == "lstm_rnn"
    assert (out / "lstm_rnn" / "weights.safetensors").stat().st_mtime_ns == before


def test_what_cannot_be(run: Run, compared: tuple[list[str], Path]) -> None:
    given, _ = compared
    assert error_of(run(*given, "--system", "bert")).startswith("--system 'bert' is unknown; choose among mv_lstm")
    assert "measure 'FOO' is unknown" in error_of(run(*given, "--system", "lstm_rnn", "--measures", "FOO", "--resume"))
    assert "the picture a.gif must end in .png, .svg or .pdf" in error_of(
        run(*given, "--system", "bm25", "--picture", "a.gif")
    )
