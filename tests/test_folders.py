"""Folders: one run at a time, also after kill -9; only what dead processes of ours left behind is removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from matchloom.folders import LOCK, folder_lock, make_folder, sweep_leftovers, try_lock
from matchloom.types import MatchloomError

HOLD = """
import sys, time
from pathlib import Path
from matchloom.folders import folder_lock
with folder_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_writer_is_refused_and_the_lock_goes_with_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    with folder_lock(folder):
        with pytest.raises(MatchloomError, match=f"{folder} is being written by another run"), folder_lock(folder):
            pass
        assert (folder / LOCK).exists()
    assert list(folder.iterdir()) == []
    with folder_lock(folder):
        pass


def test_a_lock_may_be_tried(tmp_path: Path) -> None:
    path = tmp_path / "row.lock"
    with try_lock(path) as ours:
        assert ours
        with try_lock(path) as another:
            assert not another
        assert path.exists()
    assert not path.exists()
    with pytest.raises(MatchloomError, match="none cannot be written"), try_lock(tmp_path / "none" / "row.lock"):
        pass


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(MatchloomError, match="another run"), folder_lock(tmp_path):
            pass
        process.kill()
        process.wait()
    left = tmp_path / f".matcher.json.{process.pid}-1.tmp"
    left.write_text("half")
    with folder_lock(tmp_path):
        assert not left.exists()


def test_only_what_dead_processes_of_ours_left_is_swept(tmp_path: Path) -> None:
    gone = [".weights.safetensors.999999999-140213.tmp", ".a.b.99999999999999999999-1.tmp"]
    kept = [
        f".vocab.txt.{os.getpid()}-7.tmp",
        ".vocab.txt.1-7.tmp",
        "vocab.txt.999999999-7.tmp",
        ".x.tmp",
        ".a.-1-2.tmp",
    ]
    for name in [*gone, *kept]:
        (tmp_path / name).write_text("x")
    sweep_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
    sweep_leftovers(tmp_path / "nowhere")


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MatchloomError, match="cannot be written"), folder_lock(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_what_cannot_be_made_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("x")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "below", tmp_path / ("n" * 300)):
        with pytest.raises(MatchloomError, match="cannot be made a folder: "):
            make_folder(folder)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path / "new"))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(MatchloomError, match="cannot be made a folder: Permission denied"):
        make_folder(tmp_path / "new")
