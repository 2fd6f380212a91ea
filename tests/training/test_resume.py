"""A run that is killed, or stopped by Ctrl-C, goes on to exactly the weights of one that was left alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from matchloom import Matcher
from matchloom.cli import main

EPOCHS = 12
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
    "rae": ["--set", "grid=4", "--set", "passes=2", "--batch", "16"],
}


def command(model: str, pairs: Path, folder: Path) -> list[str]:
    long = ["--epochs", str(EPOCHS), "--patience", str(EPOCHS)]
    return ["train", str(pairs), "--out", str(folder), "--model", model, *MODELS[model], "--dimensions", "6", *long]


@pytest.fixture(scope="module")
def whole(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of uninterrupted runs."""
    folders = {model: tmp_path_factory.mktemp("whole") / "run" for model in MODELS}
    for model, folder in folders.items():
        assert main(command(model, pairs, folder)) == 0
    return folders


def epochs(folder: Path) -> list[dict[str, float]]:
    """The log without what depends on the clock."""
    log = folder / "log.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    clock = ("seconds", "pairs_per_second")
    return [{key: value for key, value in json.loads(line).items() if key not in clock} for line in lines]


@pytest.mark.parametrize(
    ("model", "how"),
    [
        ("mv_lstm", signal.SIGKILL),
        ("mv_lstm", signal.SIGINT),
        ("m2s_net", signal.SIGKILL),
        ("rae", signal.SIGKILL),
    ],
)
def test_a_run_goes_on_bit_for_bit(
    pairs: Path, whole: dict[str, Path], tmp_path: Path, model: str, how: signal.Signals
) -> None:
    folder, done = tmp_path / "run", whole[model]
    process = subprocess.Popen(
        [sys.executable, "-m", "matchloom", *command(model, pairs, folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts the tests in the background has them, and so their children, ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 120
    while len(epochs(folder)) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(how)
    said = process.communicate(timeout=60)[1]
    stopped = len(epochs(folder))
    assert 2 <= stopped < len(epochs(done)), said
    if how == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130
        assert f"{folder} holds the matcher of epoch " in said
        assert "--resume" in said
        assert "Traceback" not in said
    Matcher.load(folder)  # usable as it is

    assert main([*command(model, pairs, folder), "--resume"]) == 0
    assert epochs(folder) == epochs(done)
    assert epochs(folder)[-1]["epoch"] == EPOCHS
    for name in ("weights.safetensors", "checkpoint.safetensors"):  # the best epoch; the last, and the optimizer
        ours, theirs = load_file(folder / name), load_file(done / name)
        assert ours.keys() == theirs.keys()
        for tensor in ours:
            assert ours[tensor].numpy().tobytes() == theirs[tensor].numpy().tobytes(), tensor
    start, end = (load_file(done / name) for name in ("weights.safetensors", "checkpoint.safetensors"))
    assert any((start[name] != end[f"model/{name}"]).any() for name in start), "the best epoch is not the last"
