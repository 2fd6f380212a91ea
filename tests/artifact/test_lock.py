"""Folders: one run at a time, also after kill -9; only what dead processes of ours left behind is removed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from matchloom.artifact import is_written, try_lock, writing
from matchloom.artifact.lock import LOCK
from matchloom.basics.files import make_folder, sweep_leftovers
from matchloom.types import MatchloomError

HOLD = """
import sys, time
from pathlib import Path
from matchloom.artifact import writing
with writing(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def in_a_thread(folder: Path, wait: float = 0.0) -> str:
    """What another thread is told that wants to write; nothing where it may."""
    told = []

    def work() -> None:
        try:
            with writing(folder, wait=wait):
                told.append("")
        except MatchloomError as error:
            told.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return told[0]


def test_a_second_writer_is_refused_and_the_lock_goes_with_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    with writing(folder):
        assert in_a_thread(folder).startswith(f"{folder} is being written by another run")
        assert (folder / LOCK).exists()
        assert is_written(folder)
        with writing(folder, held=True):  # who has it, has it
            pass
        with pytest.raises(MatchloomError, match="another run"), writing(folder):  # a second run of this very thread
            pass
        assert is_written(folder)
        assert "another run" in in_a_thread(folder, wait=0.05)
    assert list(folder.iterdir()) == []
    assert not is_written(folder)
    assert in_a_thread(folder) == ""


def test_who_waits_gets_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        with writing(tmp_path):
            waiting = pool.submit(in_a_thread, tmp_path, 60.0)
            time.sleep(0.05)
            assert not waiting.done()
        assert waiting.result() == ""


def test_a_lock_that_is_no_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LOCK)
    assert "is no file" in in_a_thread(tmp_path)
    assert not is_written(tmp_path)


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


@pytest.mark.slow
def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(MatchloomError, match="another run"), writing(tmp_path):
            pass
        process.kill()
        process.wait()
    left = tmp_path / f".matcher.json.{process.pid}-1.tmp"
    left.write_text("half")
    with writing(tmp_path):
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
    with pytest.raises(MatchloomError, match="cannot be written"), writing(tmp_path):
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
