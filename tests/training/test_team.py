"""Several processes started by torchrun: the weights of one, one that prints and writes, none of them necessary."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from matchloom.data.formats import write_pairs
from matchloom.training.team import Team
from tests.training.making import colour_pairs

MV_LSTM = ["--model", "mv_lstm", "--set", "hidden=6", "--set", "units=6", "--dimensions", "8"]
#: 25 steps an epoch, four epochs
LONG = ["--vectors", "random", "--batch", "6", "--negatives", "1", "--epochs", "4", "--patience", "4"]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    write_pairs(path, colour_pairs(queries=170))
    return path


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def train(
    pairs: Path, out: Path, *more: str, processes: int = 0, restarts: int = 0
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(pairs, out, *more, processes=processes, restarts=restarts),
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )


def command(pairs: Path, out: Path, *more: str, processes: int = 0, restarts: int = 0) -> list[str]:
    several = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    started = [*several, "--max-restarts", str(restarts)] if processes else []
    return [sys.executable, *started, "-m", "matchloom", "train", str(pairs), "--out", str(out), *LONG, *more]


def farthest(one: Path, other: Path) -> float:
    ours, theirs = (load_file(folder / "weights.safetensors") for folder in (one, other))
    return max(float(np.abs(ours[name] - theirs[name]).max()) for name in ours)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_take_the_steps_of_one(pairs: Path, tmp_path: Path, processes: int) -> None:
    one = train(pairs, tmp_path / "one", *MV_LSTM, "--workers", str(processes))
    several = train(pairs, tmp_path / "several", *MV_LSTM, processes=processes)
    assert one.returncode == several.returncode == 0, several.stderr
    logs = [(tmp_path / name / "log.jsonl").read_text(encoding="utf-8").splitlines() for name in ("one", "several")]
    assert sum(json.loads(line)["step"] for line in logs[0]) >= 100
    assert len(logs[0]) == len(logs[1])
    assert farthest(tmp_path / "one", tmp_path / "several") < 1e-6
    for line in logs[1]:  # printed once
        epoch = json.loads(line)["epoch"]
        assert several.stdout.count(f"epoch {epoch:3d}  ") == 1


@pytest.mark.slow
def test_dense_gradients_and_shards_are_shared_too(pairs: Path, tmp_path: Path) -> None:
    given = ["--model", "knrm", "--dimensions", "8", "--epochs", "2"]
    assert train(pairs, tmp_path / "one", *given, "--workers", "2").returncode == 0
    assert train(pairs, tmp_path / "two", *given, processes=2).returncode == 0
    assert farthest(tmp_path / "one", tmp_path / "two") < 1e-6


@pytest.mark.slow
def test_a_killed_worker_is_started_again_and_goes_on(pairs: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "run", tmp_path / "run" / "log.jsonl"
    given = [*MV_LSTM, "--epochs", "12", "--patience", "12"]
    run = subprocess.Popen(
        command(pairs, out, *given, processes=2, restarts=1),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    for _ in range(6000):
        if log.exists() and len(log.read_text(encoding="utf-8").splitlines()) >= 2:
            break
        assert run.poll() is None
        time.sleep(0.02)
    killed = []
    for name in Path("/proc").glob("[0-9]*"):
        try:
            found = (name / "environ").read_bytes().split(b"\0")
            words = (name / "cmdline").read_bytes()
        except OSError:
            continue
        if b"RANK=1" in found and str(out).encode() in words:
            os.kill(int(name.name), signal.SIGKILL)
            killed.append(name.name)
    assert killed
    told = run.communicate(timeout=240)
    assert run.returncode == 0, [line for line in told[1].splitlines() if "matchloom" in line]
    epochs = [json.loads(line)["epoch"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert epochs == list(range(1, 13))
    assert train(pairs, tmp_path / "whole", *given, "--workers", "2").returncode == 0
    assert farthest(out, tmp_path / "whole") < 1e-6


@pytest.mark.slow
def test_an_error_is_told_once(pairs: Path, tmp_path: Path) -> None:
    done = train(pairs, tmp_path / "run", "--model", "knrm", "--measure", "nonsense", processes=2)
    assert done.returncode != 0
    assert done.stderr.count("matchloom: error") == 1


@pytest.mark.slow
def test_what_needs_a_whole_batch_is_refused(pairs: Path, tmp_path: Path) -> None:
    done = train(pairs, tmp_path / "run", "--model", "m2s_net", processes=2)
    assert "looks at a batch as a whole" in done.stderr
    assert not (tmp_path / "run" / "matcher.json").exists()


def test_parts_cover_everything_once() -> None:
    for size in (1, 2, 3, 7):
        for count in (0, 1, 5, 7, 100):
            rows = np.arange(count)
            assert (
                np.concatenate([rows[Team(rank, size).part(count)] for rank in range(size)]).tolist() == rows.tolist()
            )


def test_who_is_started_again_goes_on_where_there_is_a_checkpoint(tmp_path: Path) -> None:
    assert Team(0, 2, restarted=True).begin(tmp_path, resume=False, overwrite=False) == (False, True)
    assert Team(0, 2, restarted=False).begin(tmp_path, resume=True, overwrite=False) == (True, False)


def test_alone_nothing_is_exchanged() -> None:
    scores = np.arange(3, dtype=np.float32)
    assert Team().joined_scores(scores, 3) is scores
    assert Team().agree(lambda: 5) == 5
    Team().share(torch.nn.Linear(2, 2))
