from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from tests.cli.conftest import Run, error_of


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    path = tmp_path / "test.qrels"
    path.write_text("1 0 a 1\n1 0 b 0\n2 0 a 0\n2 0 b 1\n3 0 a 1\n")
    return path


def test_troubles_are_named(run: Run, judged: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.run"
    path.write_text("1 Q0 a 1 0.5 x\n1 Q0 b 2 0.5 x\n2 Q0 a 1 nan x\n2 Q0 b 2 0.1 x\n")
    result = run("doctor", path, judged)
    assert result.code == 0, result.err
    assert "missing queries" in result.out
    assert "not finite" in result.out
    assert "ties" in result.out
    plain = json.loads(run("doctor", path, judged, "--json", "--measures", "RR").out)
    # ties go to the last id, NaN ranks last, and query 3 has no answer: (1/2 + 1 + 0) / 3
    assert plain[0]["figures"]["as trec_eval"]["RR"] == pytest.approx(0.5)
    assert {"missing queries", "not finite", "ties"} <= {finding["kind"] for finding in plain}


def test_a_good_run(run: Run, judged: Path, tmp_path: Path) -> None:
    path = tmp_path / "good.run"
    path.write_text("1 Q0 a 1 2 x\n1 Q0 b 2 1 x\n2 Q0 b 1 2 x\n2 Q0 a 2 1 x\n")
    judged.write_text("1 0 a 1\n1 0 b 0\n2 0 a 0\n2 0 b 1\n")
    result = run("doctor", path, judged, "--measures", "AP, P@1")
    assert "AP 1.0000, P@1 1.0000 over 2 judged queries" in result.out
    assert "no problem" in result.out


def test_bad_requests(run: Run, judged: Path, tmp_path: Path) -> None:
    path = tmp_path / "some.run"
    path.write_text("1 Q0 a 1 0.5\n")
    assert "RUN QRELS" in error_of(run("doctor", path))
    assert "line 1: found 5 columns, expected 6" in error_of(run("doctor", path, judged))
    path.write_text("9 Q0 a 1 0.5 x\n")
    assert "share no query" in error_of(run("doctor", path, judged))
    path.write_text("1 Q0 a 1 0.5 x\n")
    assert "measure 'Warp' is unknown" in error_of(run("doctor", path, judged, "--measures", "Warp"))
    assert "none.qrels cannot be read" in error_of(run("doctor", path, tmp_path / "none.qrels"))


def test_the_system(run: Run) -> None:
    result = run("doctor", "--system")
    assert result.code == 0, result.err
    assert platform.python_version() in result.out
    facts = json.loads(run("doctor", "--system", "--json").out)
    assert {"matchloom", "python", "cores", "threads of torch", "torch", "numpy", "matplotlib"} <= set(facts)
