"""An archive is a database: readers beside a writer, kills in the middle, other matchers, damaged folders."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import matchloom.search.lance.manifest as manifest
import matchloom.search.lance.table as store
from matchloom import Pair
from matchloom.search.lance.collection import LanceCollection
from matchloom.types import MatchloomError
from tests.killed import add_forever, reencode, run_and_kill
from tests.search.lance.making import made_matcher, made_pairs


def made_settings(**changes: object) -> str:
    """The settings of an archive, some of them changed."""
    return json.dumps({"format": 4, "table": "pairs-1", "tokenizer": {"kind": "english"}, **changes})


def test_a_reader_sees_what_others_write(tmp_path: Path) -> None:
    writer = LanceCollection.create(tmp_path / "a")
    reader = LanceCollection.open(tmp_path / "a")
    for n in range(5):  # appends that no index holds yet are found, all of them
        writer.add([Pair(f"about zebra{n} stripes", f"yes {n}", query_id=f"z{n}")])
        assert [one.id for one in reader.search(f"zebra{n}")] == [f"z{n}"]
    assert {one.id for one in reader.search("stripes")} == {f"z{n}" for n in range(5)}
    writer.remove(["z3"])
    assert reader.search("zebra3") == []
    assert len(reader) == 4


def test_a_table_is_opened_again_only_for_a_new_version(tmp_path: Path) -> None:
    writer = LanceCollection.create(tmp_path / "a")
    reader = LanceCollection.open(tmp_path / "a")
    versions = tmp_path / "a" / "pairs-1.lance" / "_versions"
    for n in range(3):
        writer.add([Pair(f"about zebra{n}", "yes", query_id=f"z{n}")])
        assert reader.snapshot().store is not reader.snapshot().store  # too new: another may come in the same tick
        os.utime(versions, (1e9 + n, 1e9 + n))
        kept = reader.snapshot().store
        assert reader.snapshot().store is kept
        assert len(kept) == n + 1


@pytest.mark.slow
def test_searches_go_on_while_pairs_are_added_and_encoded_again(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    matcher, other = made_matcher(seed=0), made_matcher("bi_lstm_rnn", seed=1)
    matcher.save(tmp_path / "m0")
    other.save(tmp_path / "m1")
    writer = LanceCollection.create(folder, tmp_path / "m0")
    writer.add(made_pairs(50))
    done = threading.Event()
    problems: list[str] = []
    searches = 0

    def read(reader: LanceCollection) -> None:
        nonlocal searches
        while not done.is_set():
            try:
                found = reader.search("baden kelar lomik", top=5, alpha=1.0)
            except MatchloomError as error:
                problems.append(str(error))
                return
            searches += 1
            if len(found) != 5:
                problems.append(f"{len(found)} found")

    shared = LanceCollection.open(folder)  # by four of them, each of which may be the one that notices a new table
    threads = [threading.Thread(target=read, args=(LanceCollection.open(folder),)) for _ in range(2)]
    threads += [threading.Thread(target=read, args=(shared,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for n in range(5):
        writer.add(made_pairs(20, seed=n, prefix=f"more{n}-"))
        writer.reencode(tmp_path / f"m{(n + 1) % 2}")
    while searches < 12 and not problems:
        time.sleep(0.01)
    done.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(writer) == 150


def test_a_reader_that_stays_open_follows_a_reencoding(tmp_path: Path) -> None:
    made_matcher(seed=0).save(tmp_path / "m0")
    made_matcher("bi_lstm_rnn", seed=1).save(tmp_path / "m1")
    writer = LanceCollection.create(tmp_path / "a", tmp_path / "m0")
    writer.add(made_pairs(20))
    reader = LanceCollection.open(tmp_path / "a")
    assert len(reader.search("baden", top=3)) == 3
    writer.reencode(tmp_path / "m1")
    assert len(reader) == 20
    assert len(reader.texts()) == 20
    assert reader.matcher is not None
    assert reader.matcher.name == "bi_lstm_rnn"
    assert reader.status()["matcher"] == "bi_lstm_rnn"


def test_a_moved_matcher_does_not_take_the_place_of_a_newer_one(tmp_path: Path) -> None:
    made_matcher(seed=0).save(tmp_path / "m0")
    made_matcher(seed=1).save(tmp_path / "m1")
    LanceCollection.create(tmp_path / "a", tmp_path / "m0").add(made_pairs(5))
    shutil.move(tmp_path / "m0", tmp_path / "moved")
    opened = LanceCollection.open(tmp_path / "a", tmp_path / "moved")
    opened.add(made_pairs(6))
    assert opened.status()["matcher_folder"] == str(tmp_path / "moved")
    LanceCollection.open(tmp_path / "a").reencode(tmp_path / "m1")
    opened.add(made_pairs(7))
    assert opened.status()["matcher_folder"] == str(tmp_path / "m1")
    assert len(LanceCollection.open(tmp_path / "a").search("baden", top=7)) == 7


def test_scores_do_not_depend_on_how_long_a_reader_was_open(tmp_path: Path) -> None:
    writer = LanceCollection.create(tmp_path / "a")
    writer.add(made_pairs(100))
    reader = LanceCollection.open(tmp_path / "a")
    reader.search("baden kelar")
    writer.add(made_pairs(100, seed=7))  # as many, other texts, the same ids
    fresh = LanceCollection.open(tmp_path / "a")
    for question in ("baden kelar", "lomik vuden poden"):
        assert reader.search(question) == fresh.search(question) != []


@pytest.mark.slow
def test_many_small_writes_leave_few_files_in_use(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add(made_pairs(50))
    for n in range(70):
        index.add([Pair(f"number {n}", "x", query_id=f"q{n % 50}")])
        index.remove([f"q{(n + 25) % 50}"])
    files = store.run(index.snapshot().store._table.stats())["fragment_stats"]["num_fragments"]
    assert files <= store._FILES + 2
    assert index.search("number 69", top=1)[0].id == "q19"


def test_compact_leaves_nothing_of_what_was_deleted(tmp_path: Path) -> None:
    made_matcher().save(tmp_path / "m")
    index = LanceCollection.create(tmp_path / "a", tmp_path / "m")
    index.add([*made_pairs(30), Pair("secretphrase", "baden", query_id="s"), Pair("old wording", "x", query_id="o")])
    index.tune([Pair("baden", "", 1, text_id="q3")])
    index.remove(["s"])
    index.add([Pair("new wording", "x", query_id="o")])

    def on_disk(text: bytes) -> bool:
        return any(text in path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file())

    assert on_disk(b"secretphrase")
    before, alpha = index.search("baden kelar", top=30, candidates=60), index.alpha
    reader = LanceCollection.open(tmp_path / "a")
    index.compact()
    assert not on_disk(b"secretphrase")
    assert not on_disk(b"old wording")
    assert on_disk(b"new wording")
    for one in (index, reader, LanceCollection.open(tmp_path / "a")):
        assert one.search("baden kelar", top=30, candidates=60) == before
        assert (len(one), one.alpha) == (31, alpha)


def test_pairs_without_their_settings_are_not_swept_away(tmp_path: Path) -> None:
    LanceCollection.create(tmp_path / "a").add(made_pairs(10))
    settings = tmp_path / "a" / "archive.json"
    kept = settings.read_bytes()
    settings.unlink()
    with pytest.raises(MatchloomError, match=r"holds the pairs of an archive \(pairs-1\.lance\) but no archive\.json"):
        LanceCollection.create(tmp_path / "a")
    settings.write_bytes(kept)
    assert len(LanceCollection.open(tmp_path / "a")) == 10


def test_what_a_killed_creation_leaves_is_no_hindrance(tmp_path: Path) -> None:
    LanceCollection.create(tmp_path / "a")
    (tmp_path / "a" / "archive.json").rename(tmp_path / "a" / ".archive.json.123-4.tmp")
    LanceCollection.create(tmp_path / "a").add(made_pairs(3))
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "archive.json",
        "pairs-1.lance",
        "pairs-1.seals",
    ]


def test_a_writer_says_that_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("matchloom.artifact.lock._SILENT", 0.05)
    index = LanceCollection.create(tmp_path / "a")
    with manifest.writing(tmp_path / "a"):
        thread = threading.Thread(target=index.add, args=(made_pairs(2),))
        thread.start()
        while not caplog.records and thread.is_alive():
            time.sleep(0.01)
    thread.join()
    assert "is being written by another process or thread; waiting for it" in caplog.text
    assert len(index) == 2


def test_pairs_may_come_from_the_archive_itself(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add(made_pairs(5))
    index.add(Pair(f"{index.remove([f'q{n}'])} was there", "x", query_id=f"q{n}") for n in range(5))
    assert {one.question for one in index.search("was there")} == {"1 was there"}


def test_what_cannot_be_locked_is_one_line(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    (tmp_path / "a" / ".lock").mkdir()
    for work in (lambda: index.add(made_pairs(1)), lambda: index.remove(["x"])):
        with pytest.raises(MatchloomError, match="cannot be written: Is a directory"):
            work()
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(MatchloomError, match="cannot be written: there is no such folder"):
        index.add(made_pairs(1))


@pytest.mark.slow
def test_what_was_confirmed_survives_a_kill(tmp_path: Path) -> None:
    LanceCollection.create(tmp_path / "a")
    rng = random.Random(0)
    confirmed = -1
    for _ in range(3):
        work = (add_forever, tmp_path / "report", tmp_path / "a", confirmed + 1)
        lines = run_and_kill(*work, after=rng.uniform(0.0, 0.6), lines=2)
        confirmed = max([confirmed, *map(int, lines)])
        index = LanceCollection.open(tmp_path / "a")
        ids = [f"{n}-{i}" for n in range(confirmed + 1) for i in range(3)]
        found = index.snapshot().store.find("id", [*ids, "counter"])
        assert {key: len(rows) for key, rows in found.items() if key != "counter"} == dict.fromkeys(ids, 1)
        if confirmed >= 0:
            counter = index.search("counter", top=1)[0].text  # replaced, not there twice
            assert len(found["counter"]) == 1
            assert int(counter.split()[-1]) in (confirmed, confirmed + 1)  # the last may be written but not reported
            assert index.search(f"number1 batch{confirmed}", top=1)[0].id == f"{confirmed}-1"
        assert len(index) in (3 * (confirmed + 1) + (confirmed >= 0), 3 * (confirmed + 2) + 1)  # whole batches only
    assert confirmed >= 5  # two in each round at least


@pytest.mark.slow
def test_a_reencoding_that_is_cut_off_leaves_the_old_vectors(tmp_path: Path) -> None:
    made_matcher(seed=0).save(tmp_path / "m0")
    made_matcher("late_interaction", seed=1).save(tmp_path / "m1")
    index = LanceCollection.create(tmp_path / "a", tmp_path / "m0")
    index.add(made_pairs(60))
    before = index.search("baden kelar lomik", top=5)
    for batches in (2, 6):  # in the middle; and when all is written but not yet taken into use
        work = (reencode, tmp_path / "report", tmp_path / "a", tmp_path / "m1", batches)
        assert run_and_kill(*work, after=0, lines=batches) == ["10\n"] * batches
        about = json.loads((tmp_path / "a" / "archive.json").read_text())
        assert about["table"] == "pairs-1"
        opened = LanceCollection.open(tmp_path / "a")
        assert opened.search("baden kelar lomik", top=5) == before
        assert len(opened) == 60
    assert len(list((tmp_path / "a").glob("pairs-*.lance"))) > 1  # what was cut off is still there
    opened = LanceCollection.open(tmp_path / "a")
    opened.reencode(tmp_path / "m1")
    assert len(list((tmp_path / "a").glob("pairs-*.lance"))) == 1  # leftovers are gone
    fresh = LanceCollection.create(tmp_path / "b", tmp_path / "m1")
    fresh.add(made_pairs(60))
    expected = [(one.id, pytest.approx(one.score, abs=1e-6)) for one in fresh.search("baden kelar lomik", top=5)]
    assert [(one.id, one.score) for one in opened.search("baden kelar lomik", top=5)] == expected


def test_another_matcher_is_refused_with_the_remedy(tmp_path: Path) -> None:
    made_matcher(seed=0).save(tmp_path / "m")
    LanceCollection.create(tmp_path / "a", tmp_path / "m").add(made_pairs(5))
    made_matcher(seed=1).save(tmp_path / "m")  # trained again, in place
    remedy = f"matchloom index {tmp_path / 'a'} --reencode {tmp_path / 'm'}"
    with pytest.raises(MatchloomError, match="holds vectors of another matcher") as told:
        LanceCollection.open(tmp_path / "a").search("baden")
    assert str(told.value).endswith(remedy)
    with pytest.raises(MatchloomError, match="holds vectors of another matcher"):
        LanceCollection.open(tmp_path / "a", made_matcher(seed=2))
    with pytest.raises(MatchloomError, match="holds vectors of another matcher"):
        LanceCollection.open(tmp_path / "a").add(made_pairs(1))
    assert LanceCollection.open(tmp_path / "a", made_matcher(seed=0)).search("baden")  # the one that made them
    LanceCollection.open(tmp_path / "a").reencode(tmp_path / "m")
    assert LanceCollection.open(tmp_path / "a").search("baden")
    shutil.rmtree(tmp_path / "m")
    with pytest.raises(MatchloomError, match="which is not there; give its new place"):
        LanceCollection.open(tmp_path / "a").search("baden")
    assert LanceCollection.open(tmp_path / "a").status()["matcher"] == "lstm_rnn"  # needs no matcher


def test_a_matcher_can_come_later(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add(made_pairs(20))
    with pytest.raises(MatchloomError, match="indexed without a matcher; to use one: matchloom index"):
        LanceCollection.open(tmp_path / "a", made_matcher())
    index.reencode(made_matcher())
    assert index.status()["vector_size"] == 6
    assert len(index.search("unheard", top=20)) == 20
    with pytest.raises(MatchloomError, match="had no folder; give the matcher"):
        LanceCollection.open(tmp_path / "a").search("x")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "is no archive: it has no archive.json; 'matchloom index"),
        ("{", "is damaged; 'matchloom doctor .* --repair' mends it where it can, or index the pairs into a new folder"),
        ("[]", "is damaged"),
        ('{"format": 4}', "is damaged"),
        ('{"format": 2}', "has format 2, this matchloom reads 4 and 5; index its pairs again"),
        (made_settings(alpha=7), "is damaged"),
        (made_settings(alpha="0.7"), "is damaged"),
        (made_settings(alpha=None), "is damaged"),
        (made_settings(table=5), "is damaged"),
        (made_settings(table="../other"), "is damaged"),
        (made_settings(vector_size="x"), "is damaged"),
        (made_settings(vector_size=""), "is damaged"),
        (made_settings(matcher=1), "is damaged"),
        (made_settings(tokenizer={"kind": "english", "max_words": "x"}), "is damaged"),
        (made_settings(format=True), "is damaged"),
        (made_settings(format="4"), "is damaged"),
        ('{"format": 99}', "has format 99, this matchloom reads up to 5; upgrade"),
    ],
)
def test_foreign_and_damaged_folders(tmp_path: Path, content: str | None, told: str) -> None:
    if content is not None:
        (tmp_path / "archive.json").write_text(content)
    with pytest.raises(MatchloomError, match=told):
        LanceCollection.open(tmp_path)


def test_missing_and_damaged_tables_are_one_line(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "a")
    index.add(made_pairs(10))
    for path in (tmp_path / "a" / "pairs-1.lance" / "data").iterdir():
        path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(MatchloomError, match="cannot be used as an archive") as told:
        LanceCollection.open(tmp_path / "a").search("baden")
    assert "\n" not in str(told.value)
    shutil.rmtree(tmp_path / "a" / "pairs-1.lance")
    with pytest.raises(MatchloomError, match="index the pairs again"):
        LanceCollection.open(tmp_path / "a")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "photo.jpg").touch()
    with pytest.raises(MatchloomError, match=r"holds other files, such as photo\.jpg"):
        LanceCollection.create(tmp_path / "full")
    with pytest.raises(MatchloomError, match="is an archive already"):
        LanceCollection.create(tmp_path / "a")
    (tmp_path / "file").touch()
    with pytest.raises(MatchloomError, match="is a file; expected an archive's folder"):
        LanceCollection.open(tmp_path / "file")
    with pytest.raises(MatchloomError, match="cannot be made an archive"):
        LanceCollection.create(tmp_path / "file")


@pytest.mark.slow
def test_indices_follow_and_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_FLAT", 300)
    monkeypatch.setattr(store, "_MANY", 10)
    matcher = made_matcher()
    index = LanceCollection.create(tmp_path / "a", matcher)
    index.add(made_pairs(600))
    assert index.status()["vectors_indexed"] == 600
    index.add(made_pairs(200, seed=3, prefix="more"))
    status = index.status()
    assert (status["pairs"], status["words_indexed"], status["vectors_indexed"]) == (800, 800, 800)
    index.add(made_pairs(5, seed=4, prefix="few"))
    assert index.status()["words_indexed"] == 800  # a few do not touch the index
    plain = LanceCollection.create(tmp_path / "b", matcher)
    monkeypatch.setattr(store, "_FLAT", 10**9)
    for seed, prefix, count in ((0, "q", 600), (3, "more", 200), (4, "few", 5)):
        plain.add(made_pairs(count, seed=seed, prefix=prefix))
    for pair in made_pairs(10, seed=8):
        expected = {one.id: pytest.approx(one.score, abs=1e-5) for one in plain.search(pair.query, top=1)}
        assert {one.id: one.score for one in index.search(pair.query, top=1)} == expected
    index.add(made_pairs(2000, seed=5, prefix="many"))
    assert index.status()["vectors_indexed"] == 2805  # grown four times: trained again


def test_two_writers_wait_for_each_other(tmp_path: Path) -> None:
    LanceCollection.create(tmp_path / "a")

    def write(n: int) -> None:
        index = LanceCollection.open(tmp_path / "a")
        for i in range(5):
            index.add([Pair("shared", f"by {n}", query_id="shared"), Pair("own", "x", query_id=f"{n}-{i}")])

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index = LanceCollection.open(tmp_path / "a")
    assert len(index) == 16
    assert len(index.snapshot().store.find("id", ["shared"])["shared"]) == 1


@pytest.mark.slow
def test_lancedb_is_loaded_by_archives_only(tmp_path: Path) -> None:
    code = (
        "import sys, socket\n"
        "def refuse(*_): raise AssertionError('network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "import matchloom, matchloom.search\n"
        "assert 'lancedb' not in sys.modules\n"
        "index = matchloom.Collection.create(sys.argv[1], [('a', 'b')], store='lance')\n"
        "assert index.search('a')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
