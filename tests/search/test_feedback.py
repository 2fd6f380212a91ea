"""The file of judgements: whole lines whoever writes, is killed, or fills the disk."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
from pathlib import Path

import pytest

from matchloom.basics import growing
from matchloom.search import feedback
from matchloom.search.feedback import FeedbackFile, Judgement, Judgements, is_feedback, read_feedback
from tests.refusing import refused

FIRST = Judgement("Wo ist „es“?\n\u2028", "a", True, "ann", 1.5, "faq")
SECOND = Judgement("where", "b", False, "", 2.0, "faq")
OLD = '{"query": "lost", "text": "Reset it.", "label": 1, "text_id": "reset", "system": "faq"}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "feedback.jsonl"


def test_what_is_kept_is_read(path: Path) -> None:
    file = FeedbackFile(path)
    file.keep(FIRST)
    file.keep(SECOND)
    assert read_feedback(path) == Judgements([FIRST, SECOND], [])
    assert path.stat().st_mode & 0o077 == 0
    assert is_feedback(path)


def test_lines_of_earlier_versions_are_read(path: Path) -> None:
    path.write_text(OLD + OLD.replace('"reset"', '""').replace("1,", "0.0,"), encoding="utf-8")
    first, second = read_feedback(path).judgements
    assert (first.question, first.id, first.right, first.system) == ("lost", "reset", True, "faq")
    assert (second.id, second.text, second.right) == ("", "Reset it.", False)
    assert is_feedback(path)


@pytest.mark.parametrize("left", [b'{"question": "a", "id"', b"{", b'{"question": "\xc3', b"\0\0\0"])
def test_half_a_line_is_never_glued_to_the_next(path: Path, left: bytes) -> None:
    FeedbackFile(path).keep(FIRST)
    with path.open("ab") as stream:
        stream.write(left)
    assert read_feedback(path) == Judgements([FIRST], []), "a reader passes over it"
    FeedbackFile(path).keep(SECOND)
    assert read_feedback(path) == Judgements([FIRST, SECOND], [])
    assert left not in path.read_bytes() or left == b"{"


def test_a_whole_last_line_without_an_end_is_kept(path: Path) -> None:
    path.write_text(json.dumps(FIRST.to_json()), encoding="utf-8")
    assert read_feedback(path).judgements == [FIRST]
    FeedbackFile(path).keep(SECOND)
    assert read_feedback(path) == Judgements([FIRST, SECOND], [])


def test_a_full_disk_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FeedbackFile(path)
    file.keep(FIRST)
    before, write = path.read_bytes(), os.write
    for fault in ("half", "none", "fsync"):
        with monkeypatch.context() as patch:
            if fault == "half":
                patch.setattr(os, "write", lambda fd, data: write(fd, data[:20]))
            elif fault == "none":
                patch.setattr(os, "write", lambda fd, data: _full())
            else:
                patch.setattr(os, "fsync", lambda fd: _full())
            with refused("unwritable", path):
                file.keep(SECOND)
        assert path.read_bytes() == before
    file.keep(SECOND)
    assert read_feedback(path).judgements == [FIRST, SECOND]


def _full() -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def _many(path: Path, name: str) -> None:
    for n in range(50):
        FeedbackFile(path).keep(Judgement(f"{name} {n} " + "x" * 5000, "a", True))


def test_several_processes_write_whole_lines(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_many, args=(path, name)) for name in ("one", "two", "three")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    found = read_feedback(path)
    assert found.damaged == []
    assert len({one.question for one in found.judgements}) == 150


def test_a_writer_that_does_not_end_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_WAIT", 0.0)
    with path.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with refused("busy", path):
            FeedbackFile(path).keep(FIRST)
    FeedbackFile(path).keep(FIRST)


def test_damaged_lines_are_named_and_left_out(path: Path) -> None:
    lines = [json.dumps(FIRST.to_json()), "no json", '{"label": 1}', json.dumps({**SECOND.to_json(), "label": 0.5})]
    lines += [json.dumps({**SECOND.to_json(), "question": " "}), "[" * 100_000, json.dumps(SECOND.to_json())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = read_feedback(path)
    assert found.judgements == [FIRST, SECOND]
    assert [one.split(":")[0] for one in found.damaged] == [f"{path}, line {n}" for n in (2, 3, 4, 5, 6)]
    path.write_text("query\ttext\na\tb\n", encoding="utf-8")
    with refused("bad_row", path, "line 1"):
        read_feedback(path)


def test_sizes_are_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (growing, feedback):
        monkeypatch.setattr(module, "LONGEST", 200)
    with refused("too_large"):
        FeedbackFile(path).keep(FIRST._replace(question="x" * 300))
    FeedbackFile(path).keep(SECOND)
    with path.open("ab") as stream:
        stream.write(b"x" * 1000 + b"\n")
    FeedbackFile(path).keep(SECOND)
    found = read_feedback(path)
    assert (len(found.judgements), [one.split(":")[0] for one in found.damaged]) == (2, [f"{path}, line 2"])
    monkeypatch.setattr(feedback, "_MOST", 1000)
    with refused("too_large", path):
        FeedbackFile(path).keep(SECOND)
    with refused("too_large", path):
        read_feedback(path)


def test_pipes_and_links_are_refused(tmp_path: Path, path: Path) -> None:
    os.mkfifo(path)
    with refused("wrong_type", path):
        read_feedback(path)
    with refused("wrong_type", path):
        FeedbackFile(path).keep(FIRST)
    assert not is_feedback(path)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    with refused("unwritable", link):
        FeedbackFile(link).keep(FIRST)
    with refused("unreadable", link):
        read_feedback(link)


def test_judgements_of_several_systems_are_not_mixed() -> None:
    given = Judgements([FIRST, SECOND._replace(system="other"), SECOND._replace(system="")], [])
    assert given.of_system("faq").judgements == [FIRST, SECOND._replace(system="")]
    assert Judgements([FIRST], []).of_system("whatever").judgements == [FIRST]
    with refused("mismatch", "'third'", "faq", "other"):
        given.of_system("third")
