"""The journal of a collection: whole lines or none, and what was altered, left out or exchanged is found."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from matchloom.data.entries import Entry
from matchloom.search import journal as module
from matchloom.search.journal import Change, Journal
from tests.refusing import refused

SEED = "what was fitted"
CHANGES = [
    Change([Entry("a", "text a", ("one?", "two?"), {"topic": "looms"})]),
    Change((), ["a"]),
    Change([Entry("b", "text\nb \u2028 ü", (), {})], ["c", "d"]),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of three changes."""
    path = tmp_path / "changes-1.jsonl"
    written = Journal(path, SEED)
    for change in CHANGES:
        written.append([change])
    return path


def read(path: Path, seed: str = SEED) -> list[Change]:
    return Journal(path, seed).read()


def test_what_is_written_is_read_once(path: Path) -> None:
    found = Journal(path, SEED)
    assert found.changed()
    assert [(list(one.put), list(one.remove)) for one in found.read()] == [
        (list(one.put), list(one.remove)) for one in CHANGES
    ]
    assert not found.changed()
    assert found.read() == []
    other = Journal(path, SEED)
    other.read()
    other.append([Change((), ["x"]), Change((), ["y"])])
    assert found.changed()
    assert [list(one.remove) for one in found.read()] == [["x"], ["y"]]
    assert path.read_bytes().count(b"\n") == 5


def confirm(path: Path, lines: list[bytes]) -> None:
    """As it was when these lines were there."""
    beside = path.with_suffix(".confirmed")
    beside.write_bytes(b"%020d " % len(b"".join(lines)) + beside.read_bytes()[21:])


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_journal_that_was_cut_at_the_end_of_a_line_is_found(path: Path, kept: int) -> None:
    whole, beside = path.read_bytes(), path.with_suffix(".confirmed")
    path.write_bytes(lines(whole, *range(kept)))
    found = Journal(path, SEED)
    with refused("altered", str(path), "cut", beside.name):
        found.read()
    path.write_bytes(whole)
    assert len(found.read()) == 3
    path.write_bytes(lines(whole, *range(kept)))
    beside.unlink()  # as the message says
    again = Journal(path, SEED)
    assert len(again.read()) == kept
    again.append([CHANGES[0]])
    assert len(read(path)) == kept + 1


def test_a_change_that_is_there_and_was_not_confirmed_is_taken(path: Path) -> None:
    confirm(path, path.read_bytes().splitlines(keepends=True)[:2])
    assert len(read(path)) == 3


@pytest.mark.parametrize("content", [b"", b"\0" * 54, b"9" * 54, b"%020d" % 7, None])
def test_what_is_beside_a_journal_and_says_nothing_proves_nothing(path: Path, content: bytes | None) -> None:
    beside = path.with_suffix(".confirmed")
    beside.unlink()
    if content is None:
        os.mkfifo(beside)
    else:
        beside.write_bytes(content)
    found = Journal(path, SEED)
    assert len(found.read()) == 3
    found.append([CHANGES[0]])
    assert len(read(path)) == 4


@pytest.mark.parametrize("kept", [1, 20, 32, 33, 34, 60, -1])
def test_half_a_line_of_a_killed_writer_is_passed_over_and_then_removed(path: Path, kept: int) -> None:
    whole = path.read_bytes()
    *before, last = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(before) + last[:kept])
    confirm(path, before)
    found = Journal(path, SEED)
    assert len(found.read()) == 2
    assert found.changed()  # there may be more of it soon
    assert found.read() == []
    found.append([CHANGES[2]])
    assert path.read_bytes() == whole
    assert len(read(path)) == 3


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def lines(content: bytes, *order: int) -> bytes:
    found = content.splitlines(keepends=True)
    return b"".join(found[n] for n in order)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "altered": lambda content: content.replace(b"text a", b"text A"),
    "altered checksum": lambda content: flipped(content, 3),
    "the end of the last line altered": lambda content: flipped(content, len(content) - 1),
    "the end of another line altered": lambda content: flipped(content, content.index(b"\n")),
    "a line left out": lambda content: lines(content, 0, 2),
    "the first line left out": lambda content: lines(content, 1, 2),
    "lines exchanged": lambda content: lines(content, 1, 0, 2),
    "a line twice": lambda content: lines(content, 0, 1, 1, 2),
    "an empty line": lambda content: content + b"\n",
    "no journal": lambda content: b"[" * 1000,
    "bytes of no meaning behind it": lambda content: content + b"\xff\x00abc",
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_was_altered_is_found_and_nothing_of_it_is_taken(path: Path, name: str) -> None:
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[name](whole))
    found = Journal(path, SEED)
    with refused("altered", str(path), "byte"):
        found.read()
    path.write_bytes(whole)  # mended: a reader that was refused has missed nothing
    assert len(found.read()) == 3


def test_the_journal_of_another_collection_is_found(path: Path) -> None:
    with refused("altered", "byte 0"):
        read(path, "another fit")


@pytest.mark.parametrize("line", ['{"put": [], "remove": [7]}', '{"put": [{}], "remove": []}', "[]", "{", '{"x": 1}'])
def test_a_line_with_its_checksum_that_is_no_change_is_found(path: Path, line: str) -> None:
    content = line.encode()
    path.write_bytes(module._checksum(SEED, content).encode() + b" " + content + b"\n")
    with refused("altered", "byte 0"):
        read(path)


def test_a_journal_that_got_shorter_is_found_by_who_reads_and_who_writes(path: Path) -> None:
    found = Journal(path, SEED)
    found.read()
    shorter = lines(path.read_bytes(), 0)
    path.write_bytes(shorter)
    assert found.changed()
    with refused("altered"):
        found.read()
    with refused("altered"):
        found.append([CHANGES[0]])
    assert path.read_bytes() == shorter
    path.unlink()
    with refused("unwritable"):
        found.append([CHANGES[0]])
    assert not path.exists()


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_leaves_no_half_line(path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()
    found = Journal(path, SEED)
    found.read()
    pwrite = os.pwrite

    def full(*given: object) -> int:
        if call == "write":
            pwrite(given[0], bytes(given[1])[:11], given[2])  # type: ignore[arg-type, call-overload]
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite" if call == "write" else "fsync", full)
        with refused("unwritable", str(path), "No space left on device"):
            found.append([CHANGES[0]])
    assert path.read_bytes() == before
    found.append([CHANGES[0]])
    assert len(read(path)) == 4


def test_writes_may_be_short(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, content, offset: pwrite(file, bytes(content)[:7], offset))
    found = Journal(path, SEED)
    found.read()
    found.append(CHANGES)
    assert len(read(path)) == 6


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_file_is_neither_read_nor_written_nor_waited_for(tmp_path: Path, kind: str, empty: bool) -> None:
    path, elsewhere = tmp_path / "changes-1.jsonl", tmp_path / "elsewhere"
    found = Journal(path, SEED)
    if not empty:
        found.append(CHANGES)
        path.rename(elsewhere)
    else:
        elsewhere.write_bytes(b"")
    before = elsewhere.read_bytes()
    {"pipe": os.mkfifo, "link": lambda one: one.symlink_to(elsewhere), "folder": Path.mkdir}[kind](path)
    with pytest.raises(ValueError, match=str(path)):
        Journal(path, SEED).read()
    with pytest.raises(ValueError, match=str(path)):
        found.append([CHANGES[0]])
    assert elsewhere.read_bytes() == before


def test_more_than_memory_has_is_not_read(path: Path) -> None:
    os.truncate(path, 2**36)
    with refused("altered"):
        read(path)


def test_lines_are_json_that_people_can_read(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        assert json.loads(line.partition(" ")[2]).keys() == {"put", "remove"}
