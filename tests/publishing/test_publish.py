"""What is published is whole, immutable and numbered; what fails leaves the newest as it was."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from matchloom import Collection, Pair
from matchloom.basics.stores import FolderStore, is_uri, open_store, shown
from matchloom.fitting.calibrated import Calibrated
from matchloom.publishing import publish as publishing
from matchloom.publishing import snapshot as s
from matchloom.publishing.publish import publish
from matchloom.publishing.replica import Replica
from matchloom.text.tokenize import Tokenizer
from tests.publishing.making import PAIRS, Failing, make_collection
from tests.refusing import refused

KEY = b"a key of sixteen bytes or more"


@pytest.fixture
def faq(tmp_path: Path) -> Collection:
    return make_collection(tmp_path / "faq")


def ask(folder: Path, question: str) -> str:
    return Collection.open(folder).search(question, top=1)[0].text


def test_a_copy_answers_as_the_collection_does_and_follows_it(faq: Collection, tmp_path: Path) -> None:
    store = tmp_path / "store"
    first = publish(tmp_path / "faq", store)
    assert (first.version, first.new, first.sent) == (1, True, first.bytes)
    replica = Replica(str(store), tmp_path / "copy")
    before = replica.start()
    faq.add([("how do I bake?", "Use an oven.")])
    second = publish(tmp_path / "faq", store)
    assert second.version == 2
    assert second.sent < first.sent / 10  # only the changes
    after = replica.pull()
    assert (after.version, ask(after.folder, "baking")) == (2, "Use an oven.")
    assert ask(before.folder, "grind") == "Use a mill."  # requests may still have it
    for question in ("weave", "bake", "cut wood"):
        hits = [Collection.open(one).search(question) for one in (tmp_path / "faq", after.folder)]
        assert list(hits[0]) == list(hits[1])
    faq.refit()
    publish(tmp_path / "faq", store)
    assert ask(replica.pull().folder, "baking") == "Use an oven."
    assert not before.folder.exists()


def test_a_copy_knows_how_long_its_journal_was(faq: Collection, tmp_path: Path) -> None:
    faq.add([("how do I bake?", "Use an oven.")])
    publish(tmp_path / "faq", tmp_path / "store")
    copy = Replica(str(tmp_path / "store"), tmp_path / "copy").start().folder
    beside = next(copy.glob("changes-*.confirmed"))
    assert beside.read_bytes() == (tmp_path / "faq" / beside.name).read_bytes()
    journal = beside.with_suffix(".jsonl")
    journal.unlink()
    journal.write_bytes(b"")  # cut at the end of a line
    with refused("altered", "was cut at byte 0"):
        Collection.open(copy)


def test_a_journal_that_was_cut_is_not_published(faq: Collection, tmp_path: Path) -> None:
    publish(tmp_path / "faq", tmp_path / "store")
    faq.add([("how do I bake?", "Use an oven.")])
    os.truncate(next((tmp_path / "faq").glob("changes-*.jsonl")), 0)
    with refused("altered", "was cut at byte 0"):
        publish(tmp_path / "faq", tmp_path / "store")
    found = s.read_newest(open_store(str(tmp_path / "store")))
    assert found is not None
    assert found.version == 1


def test_what_a_killed_writer_left_is_not_published(faq: Collection, tmp_path: Path) -> None:
    faq.add([("how do I bake?", "Use an oven.")])
    journal = next((tmp_path / "faq").glob("changes-*.jsonl"))
    whole = journal.read_bytes()
    journal.write_bytes(whole + b"0123abcd")
    publish(tmp_path / "faq", tmp_path / "store")
    copy = Replica(str(tmp_path / "store"), tmp_path / "copy").start().folder
    assert (copy / journal.name).read_bytes() == whole


def test_nothing_new_is_not_published(faq: Collection, tmp_path: Path) -> None:
    publish(tmp_path / "faq", tmp_path / "store")
    again = publish(tmp_path / "faq", tmp_path / "store")
    assert (again.version, again.new, again.sent) == (1, False, 0)


def test_what_is_inside_is_published_too(tmp_path: Path) -> None:
    labelled = [Pair(query, text, int(query == own)) for own, text in PAIRS for query, _ in PAIRS]
    made = Calibrated.fit(Collection.fit(PAIRS), labelled, Tokenizer())
    made.save(tmp_path / "calibrated")
    publish(tmp_path / "calibrated", tmp_path / "store")
    copy = Calibrated.load(Replica(str(tmp_path / "store"), tmp_path / "copy").start().folder)
    assert copy.score(labelled).tolist() == made.score(labelled).tolist()


@pytest.mark.parametrize("failing", ["files", "snapshots", "newest"])
def test_a_connection_lost_while_writing_leaves_the_newest(
    failing: str, faq: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    publish(tmp_path / "faq", store)
    faq.add([("how do I bake?", "Use an oven.")])
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "open_store", lambda uri: Failing(store, writing=failing))
        with refused("unwritable", f"/{failing}"):
            publish(tmp_path / "faq", store)
    replica = Replica(str(store), tmp_path / "copy")
    assert replica.start().version == 1
    assert publish(tmp_path / "faq", store).version >= 2
    assert ask(replica.pull().folder, "baking") == "Use an oven."


def test_a_store_that_does_not_answer_leaves_the_copy(faq: Collection, tmp_path: Path) -> None:
    store = tmp_path / "store"
    publish(tmp_path / "faq", store)
    Replica(str(store), tmp_path / "copy").start()
    later = Replica(str(store), tmp_path / "copy")
    later._store = Failing(store, reading=True)
    assert later.start().version == 1
    cold = Replica(str(store), tmp_path / "other")
    cold._store = Failing(store, reading=True)
    with refused("unreadable", "503"):
        cold.start()


def test_what_is_damaged_in_the_store_is_refused_and_mended_by_again(faq: Collection, tmp_path: Path) -> None:
    store = tmp_path / "store"
    publish(tmp_path / "faq", store)
    index = max((store / "files").iterdir(), key=lambda path: path.stat().st_size)
    content = index.read_bytes()
    index.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    replica = Replica(str(store), tmp_path / "copy")
    with refused("altered", index.name):
        replica.start()
    assert [path.name for path in (tmp_path / "copy").iterdir()] == []  # nothing half-written
    assert publish(tmp_path / "faq", store, again=True).new
    assert replica.start().version == 2
    index.unlink()
    faq.add([("how do I bake?", "Use an oven.")])
    assert publish(tmp_path / "faq", store).sent > len(content)  # what is missing is sent again


def test_a_copy_that_was_damaged_here_is_fetched_again(faq: Collection, tmp_path: Path) -> None:
    publish(tmp_path / "faq", tmp_path / "store")
    copy = Replica(str(tmp_path / "store"), tmp_path / "copy").start()
    index = next(copy.folder.glob("index-*"))
    index.chmod(0o600)
    index.write_bytes(b"nonsense")
    assert ask(Replica(str(tmp_path / "store"), tmp_path / "copy").start().folder, "weave") == "Use a loom."


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b", ".hidden", "a//b", "\\x", "a\0b", ""])
def test_names_that_lead_elsewhere_are_refused(name: str, faq: Collection, tmp_path: Path) -> None:
    store = tmp_path / "store"
    publish(tmp_path / "faq", store)
    newest = s.read_newest(open_store(str(store)))
    assert newest is not None
    found = s.read_snapshot(open_store(str(store)), newest)
    forged = s.Snapshot(1, 2, found.kind, 0.0, "0", {name: next(iter(found.files.values()))})
    _forge(store, forged)
    with refused("damaged"):
        Replica(str(store), tmp_path / "copy").start()
    assert not (tmp_path / "outside").exists()


def _forge(store: Path, forged: s.Snapshot, signature: str = "") -> None:
    content = s.pack(forged)
    name = s.snapshot_name(forged.version, content)
    (store / name).write_bytes(content)
    newest = s.Newest(1, forged.version, name, s.sha256(content), signature)
    (store / s.NEWEST).write_bytes(s.pack(newest))


def test_who_has_the_key_takes_nothing_that_another_wrote(faq: Collection, tmp_path: Path) -> None:
    store = tmp_path / "store"
    publish(tmp_path / "faq", store, key=KEY)
    replica = Replica(str(store), tmp_path / "copy", KEY)
    assert replica.start().version == 1
    signed = (store / s.NEWEST).read_bytes()
    faq.add([("how do I bake?", "Use poison.")])
    publish(tmp_path / "faq", store, key=b"another key of as many bytes")
    with refused("altered", "signature"):
        replica.pull()
    publish(tmp_path / "faq", store)
    with refused("altered", "signature"):
        replica.pull()
    assert replica.copy is not None
    assert replica.copy.version == 1
    publish(tmp_path / "faq", store, key=KEY)
    taken = replica.pull().version
    (store / s.NEWEST).write_bytes(signed)  # an old pointer, once signed, played again
    with refused("altered", f"but {taken} was here"):
        replica.pull()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": "1"}', b"\xff", b"{}" * 9])
def test_a_pointer_that_is_none_is_refused(content: bytes, faq: Collection, tmp_path: Path) -> None:
    store = tmp_path / "store"
    publish(tmp_path / "faq", store)
    (store / s.NEWEST).write_bytes(content)
    with refused("damaged"):
        Replica(str(store), tmp_path / "copy").start()


def test_a_newer_format_asks_for_an_upgrade(faq: Collection, tmp_path: Path) -> None:
    store = tmp_path / "store"
    publish(tmp_path / "faq", store)
    found = json.loads((store / s.NEWEST).read_bytes())
    (store / s.NEWEST).write_text(json.dumps({**found, "format": 2}))
    with refused("wrong_format", "upgrade"):
        Replica(str(store), tmp_path / "copy").start()


def test_two_publishers_are_told_of_each_other(
    faq: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    publish(tmp_path / "faq", store)
    faq.add([("how do I bake?", "Use an oven.")])
    own = s.read_newest
    looks = 0

    def between(given: FolderStore) -> s.Newest | None:
        nonlocal looks
        looks += 1
        if looks == 2:  # after the files were sent, before the switch
            monkeypatch.setattr(s, "read_newest", own)
            publish(tmp_path / "faq", store)
        return own(given)

    monkeypatch.setattr(s, "read_newest", between)
    with refused("busy"):
        publish(tmp_path / "faq", store)
    monkeypatch.setattr(s, "read_newest", own)
    assert publish(tmp_path / "faq", store).new is False


def test_older_versions_and_their_files_are_swept(faq: Collection, tmp_path: Path) -> None:
    store = tmp_path / "store"
    for n in range(5):
        faq.add([(f"question {n}", f"answer {n}")])
        publish(tmp_path / "faq", store, keep=2)
        for path in (store / "files").iterdir():
            long_ago = time.time() - 10_000
            os.utime(path, (long_ago, long_ago))
    assert sorted(path.name.partition("-")[0] for path in (store / "snapshots").iterdir()) == ["4", "5"]
    replica = Replica(str(store), tmp_path / "copy")
    assert ask(replica.start().folder, "question 4") == "answer 4"
    assert len(list((store / "files").iterdir())) == 6  # manifest, index, two journals with their lengths
    (store / s.NEWEST).unlink()
    assert publish(tmp_path / "faq", store).version == 6  # a number is never given twice


@pytest.mark.slow
def test_changes_go_on_while_it_is_published(faq: Collection, tmp_path: Path) -> None:
    store, end = tmp_path / "store", threading.Event()

    def change() -> None:
        n = 0
        while not end.is_set():
            faq.add([(f"question {n}", f"answer {n}")])
            n += 1
            if n % 20 == 0:
                faq.refit()

    thread = threading.Thread(target=change)
    thread.start()
    replica = Replica(str(store), tmp_path / "copy")
    try:
        for _ in range(4):
            publish(tmp_path / "faq", store)
            opened = Collection.open(replica.pull().folder)
            own = [entry for entry in opened.entries.texts if entry.startswith("answer ")]
            assert sorted(own) == sorted(f"answer {n}" for n in range(len(own)))  # a prefix of all changes
    finally:
        end.set()
        thread.join()


def test_a_disk_that_is_too_small_is_told_before_anything_is_written(
    faq: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "faq", tmp_path / "store")
    usage = type(shutil.disk_usage("/"))(1000, 999, 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with refused("unwritable", "needs"):
        Replica(str(tmp_path / "store"), tmp_path / "copy").start()


def test_what_cannot_be_published(tmp_path: Path) -> None:
    with refused("missing"):
        publish(tmp_path, tmp_path / "store")
    with refused("missing"):
        Replica(str(tmp_path / "nothing"), tmp_path / "copy").start()
    make_collection(tmp_path / "faq")
    index = next((tmp_path / "faq").glob("index-*"))
    index.write_bytes(index.read_bytes()[:-1])
    with refused("altered"):
        publish(tmp_path / "faq", tmp_path / "store")
    assert not (tmp_path / "store" / s.NEWEST).exists()


def test_keys(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY + b"\n")
    assert s.read_key(tmp_path / "key") == KEY
    assert s.read_key(None, {}) is None
    assert s.read_key(None, {s.KEY: KEY.decode()}) == KEY
    (tmp_path / "key").write_text("short")
    with refused("bad_value"):
        s.read_key(tmp_path / "key")


def test_a_uri_is_shown_without_secrets() -> None:
    assert shown("s3://name:secret@bucket/faq?endpoint_override=here") == "s3://bucket/faq"
    assert is_uri("S3://bucket")
    assert not is_uri("faq=s3://bucket")
    with refused("bad_value", "elsewhere"):
        open_store("file://elsewhere/faq")
