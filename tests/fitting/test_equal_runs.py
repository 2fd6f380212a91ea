"""Equal fits write equal files, whatever the number of threads; but for how long they took, which can be left out."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from matchloom.basics import clock
from matchloom.data.formats import write_pairs
from matchloom.types import Pair
from tests.fitting.test_run import faq


def same_or_not() -> list[Pair]:
    """Pairs of texts that mean the same, or do not."""
    texts = [pair.query for pair in faq(40)]
    return [Pair(one, other, int(n % 5 == m % 5)) for n, one in enumerate(texts) for m, other in enumerate(texts[:9])]


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [faq(), same_or_not()], ids=["answers", "pairs"])
def test_equal_fits_write_equal_files(pairs: list[Pair], tmp_path: Path) -> None:
    write_pairs(tmp_path / "data.tsv", pairs)
    found = {}
    for name, threads in (("a", "1"), ("b", "1"), ("c", "2"), ("d", "4")):
        counts = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        env = {**os.environ, **counts, clock.VARIABLE: "1700000000", "MATCHLOOM_ENCODERS": "none"}
        command = [sys.executable, "-m", "matchloom", "fit", "data.tsv", "--out", f"{name}/fit"]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        home = tmp_path / name / "fit"
        found[name] = {str(one.relative_to(home)): digest(one) for one in sorted(home.rglob("*")) if one.is_file()}
    assert found["a"] == found["b"], "equal runs"
    assert found["a"] == found["c"] == found["d"], "with more threads"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_durations_are_left_out_where_bytes_should_be_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(clock.VARIABLE, raising=False)
    assert clock.written(1.5) == 1.5
    monkeypatch.setenv(clock.VARIABLE, "0")
    assert json.dumps(clock.written(1.5)) == "0.0"
