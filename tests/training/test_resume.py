"""A run that is killed, or stopped by Ctrl-C, goes on to exactly the weights of one that was left alone."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from safetensors.torch import load_file

from matchloom import Matcher
from matchloom.cli import main
from tests.killed import in_a_step, run_and_kill
from tests.killed import train as killed_training

EPOCHS = 6
WORDS = "loom warp weft shuttle thread cloth dye wool silk spindle knot fringe".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lists of four about made-up things, so that an epoch takes a good part of a second's tenth."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    lines = ["query\ttext\tlabel"]
    for n in range(60):
        one, two = WORDS[n % 12], WORDS[(n * 5 + n // 12) % 12]
        for m in range(4):
            other = WORDS[(n + 3 * m) % 12]
            lines.append(f"what of {one} and {two} {n}\tthe {other} is for {WORDS[(n + m) % 12]} {n}\t{int(m == 0)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


MODELS = {
    "mv_lstm": ["--set", "hidden=6", "--set", "units=6", "--set", "lexical=true", "--batch", "16"],
    # Batch statistics, dropout, features of the pair, an optimizer whose rows wait, and two rounds in each epoch.
    "m2s_net": [
        *("--set", "blocks=1", "--set", "frame=12", "--set", "features=pair", "--batch", "8", "--check-every", "20"),
    ],
    # What was learnt before the first epoch.
    "rae": ["--set", "grid=4", "--set", "autoencoder_epochs=2", "--batch", "16"],
}


def command(model: str, pairs: Path, folder: Path) -> list[str]:
    long = ["--epochs", str(EPOCHS), "--patience", str(EPOCHS)]
    return ["train", str(pairs), "--out", str(folder), "--model", model, *MODELS[model], "--dimensions", "6", *long]


@pytest.fixture(scope="module")
def whole(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a model's uninterrupted run."""

    @cache
    def run(model: str) -> Path:
        folder = tmp_path_factory.mktemp("whole") / "run"
        assert main(command(model, pairs, folder)) == 0
        return folder

    return run


def epochs(folder: Path) -> list[dict[str, float]]:
    """The log without what depends on the clock."""
    log = folder / "log.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    clock = ("seconds", "pairs_per_second")
    return [{key: value for key, value in json.loads(line).items() if key not in clock} for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_killed_run_goes_on_bit_for_bit(
    pairs: Path, whole: Callable[[str], Path], tmp_path: Path, model: str
) -> None:
    folder = tmp_path / "run"
    work = (killed_training, tmp_path / "report", folder / "log.jsonl", command(model, pairs, folder))
    assert run_and_kill(*work, after=0, lines=1) == ["in a step\n"]
    check(folder, whole(model), command(model, pairs, folder))


def test_a_run_stopped_by_ctrl_c_goes_on_bit_for_bit(
    pairs: Path, whole: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    # A shell that starts the tests in the background has them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    hook = in_a_step(folder / "log.jsonl", lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        assert main(command("mv_lstm", pairs, folder)) == 130
    finally:
        hook.remove()
        signal.signal(signal.SIGINT, before)
    said = capsys.readouterr().err
    assert f"{folder} holds the matcher of epoch " in said
    assert "--resume" in said
    assert "Traceback" not in said
    check(folder, whole("mv_lstm"), command("mv_lstm", pairs, folder))


def check(folder: Path, done: Path, command: list[str]) -> None:
    """What was stopped can be used, and goes on to be what was left alone."""
    assert 2 <= len(epochs(folder)) < len(epochs(done))
    Matcher.load(folder)

    assert main([*command, "--resume"]) == 0
    assert epochs(folder) == epochs(done)
    assert epochs(folder)[-1]["epoch"] == EPOCHS
    for name in ("weights.safetensors", "checkpoint.safetensors"):  # the best epoch; the last, and the optimizer
        ours, theirs = load_file(folder / name), load_file(done / name)
        assert ours.keys() == theirs.keys()
        for tensor in ours:
            assert ours[tensor].numpy().tobytes() == theirs[tensor].numpy().tobytes(), tensor
    start, end = (load_file(done / name) for name in ("weights.safetensors", "checkpoint.safetensors"))
    assert any((start[name] != end[f"model/{name}"]).any() for name in start), "the best epoch is not the last"
