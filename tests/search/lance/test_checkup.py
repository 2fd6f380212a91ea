"""An archive that came to harm: it is found, and what was whole comes back."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from matchloom import Pair
from matchloom.search.lance import checkup, manifest, seals
from matchloom.search.lance.collection import LanceCollection
from matchloom.search.lance.connection import told_in_one_line
from matchloom.types import MatchloomError
from tests.hostile.damage import damage
from tests.search.lance.making import made_matcher, made_pairs

QUESTIONS = ("baden kelar lomik", "raden pomik", "the counter")


def made_archive(folder: Path, matcher: Path | None = None) -> LanceCollection:
    """Several versions, with pairs added, replaced and deleted."""
    index = LanceCollection.create(folder, matcher)
    for n in range(3):
        index.add([*made_pairs(15, seed=n, prefix=f"p{n}-"), Pair("the counter", f"stands at {n}", query_id="counter")])
    index.remove(["p0-3"])
    return index


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Do not change it: take a copy."""
    folder = tmp_path_factory.mktemp("whole")
    made_matcher().save(folder / "m")
    made_archive(folder / "a", folder / "m")
    return folder / "a"


def found_in(folder: Path) -> list[object]:
    index = LanceCollection.open(folder)
    return [index.search(question, top=8) for question in QUESTIONS]


def ids_in(folder: Path) -> set[str]:
    ids = {f"p{n}-{i}" for n in range(3) for i in range(15)} | {"counter"}
    return set(LanceCollection.open(folder).snapshot().store.find("id", sorted(ids)))


def damaged_in(folder: Path) -> set[str]:
    return {finding.what for finding in LanceCollection.check(folder).findings if not finding.whole}


def test_a_whole_archive_is_whole_and_left_alone(archive: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(archive, tmp_path / "a"))
    found = LanceCollection.check(copy)
    assert found.whole, found
    assert {finding.what for finding in found.findings} == {
        "settings", "files", "versions", "rows", "words", "vectors", "indices"
    }  # fmt: skip
    assert "all 45 made again by lstm_rnn" in str(found)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert str(LanceCollection.repair(copy)).endswith("is whole; nothing was changed.")
    assert before == {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_every_damage_is_found_or_harmless_and_what_was_whole_comes_back(archive: Path, tmp_path: Path) -> None:
    expected, ids = found_in(archive), ids_in(archive)
    told: Counter[str] = Counter()
    for seed in range(12):
        copy = Path(shutil.copytree(archive, tmp_path / "a"))
        done = damage(copy, random.Random(seed))
        checked = LanceCollection.check(copy)
        if checked.whole:
            assert found_in(copy) == expected, done
            told["harmless"] += 1
        else:
            told["found"] += 1
            try:
                mended = LanceCollection.repair(copy)
            except MatchloomError as error:  # all versions share the damaged file
                told[str(error).partition(": ")[2].partition(",")[0]] += 1
            else:
                assert LanceCollection.check(copy).whole, done
                if mended.lost:
                    assert len(ids_in(copy)) >= 15, done  # the first write is in every version
                else:
                    assert ids_in(copy) == ids, done
        shutil.rmtree(copy)
    assert told["found"] >= 6
    assert told.keys() <= {"found", "harmless", "no version of its table with any pairs is whole"}


def test_repair_goes_back_and_says_what_is_lost(archive: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(archive, tmp_path / "a"))
    index = LanceCollection.open(copy)
    index.add([Pair("a new one", "yes", query_id="new")])
    newest = max((copy / "pairs-1.lance" / "data").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:-9])
    found = LanceCollection.check(copy)
    assert not found
    assert "is damaged (files" in found.verdict
    mended = LanceCollection.repair(copy)
    assert mended.pairs == 45
    assert mended.lost[0].endswith("(1 added); there were 46 pairs, now there are 45")
    assert mended.kept is not None
    assert (mended.kept / "pairs-1.lance").is_dir()
    assert found_in(copy) == found_in(archive)
    index.add([Pair("a new one", "yes", query_id="new")])  # a handle that was open goes on
    assert LanceCollection.check(copy).whole
    index.compact()
    assert not mended.kept.exists()  # what was deleted may be in it
    assert LanceCollection.check(copy).whole


def test_settings_that_are_lost_come_from_the_last_write(archive: Path, tmp_path: Path) -> None:
    for content in (None, "{", (archive / "archive.json").read_text().replace("0.7", "0.2")):
        copy = Path(shutil.copytree(archive, tmp_path / "a"))
        if content is None:
            (copy / "archive.json").unlink()
        else:
            (copy / "archive.json").write_text(content)
        with pytest.raises(MatchloomError, match=r"is damaged|is no archive"):
            LanceCollection.open(copy)
        assert damaged_in(copy) == {"settings"}
        assert LanceCollection.repair(copy).lost == []
        assert found_in(copy) == found_in(archive)
        shutil.rmtree(copy)


def test_what_a_killed_writer_left_is_no_damage(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Path(shutil.copytree(archive, tmp_path / "a"))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    index = LanceCollection.open(copy)
    with monkeypatch.context() as patch:
        patch.setattr(seals.Sealing, "seal", killed)
        with pytest.raises(KeyboardInterrupt):
            index.add([Pair("late", "late", query_id="late")])
    with (copy / "pairs-1.seals").open("ab") as file:
        file.write(b"0123")  # of a line
    found = LanceCollection.check(copy)
    assert found.whole, found
    assert "of a write that was cut off" in str(found)
    index.add([Pair("later", "later", query_id="later")])
    found = LanceCollection.check(copy)
    assert found.whole
    assert "cut off" not in str(found)
    assert len(index) == 47


def test_an_archive_without_seals_is_read_all_the_same(archive: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(archive, tmp_path / "a"))
    (copy / "pairs-1.seals").unlink()
    assert LanceCollection.check(copy).whole
    index = LanceCollection.open(copy)
    index.add([Pair("one more", "x", query_id="more")])
    assert "files" in {finding.what for finding in LanceCollection.check(copy).findings}  # sealed from now on


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"words": "other words"}, "words"),
        ({"key": "p1-2"}, "rows"),
        ({"same": "another's"}, "words"),
        ({"question": None}, "rows"),
        ({"vectors": [0.5] * 12}, "vectors"),
        ({"vectors": [float("inf")] * 12}, "vectors"),
    ],
)
def test_rows_that_disagree_are_found(archive: Path, tmp_path: Path, change: dict[str, object], what: str) -> None:
    copy = Path(shutil.copytree(archive, tmp_path / "a"))
    index = LanceCollection.open(copy)
    with index._archive.changing(["by hand"]) as store:
        rows = store.take(store.find("id", ["p1-1"])["p1-1"], store.columns)
        plain = {**rows.to_pylist()[0], "key": "by hand", **change}
        store.append(pa.Table.from_pylist([{name: plain[name] for name in store.columns}], rows.schema.remove(
            rows.schema.get_field_index("_rowid")
        )))  # fmt: skip
    assert what in damaged_in(copy)


def test_a_row_that_is_missing_is_found(archive: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(archive, tmp_path / "a"))
    index = LanceCollection.open(copy)
    with manifest.writing(copy):  # past the seals
        seals._append(copy, "pairs-1", seals._line({"version": index.snapshot().store.version, "rows": 46}))
    found = LanceCollection.check(copy)
    assert "45 can be read, but 46 were written" in str(found)
    assert not found


def test_a_sample_of_the_vectors_or_all(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "_SAMPLE", 10)
    assert "'10 made again" in str(LanceCollection.check(archive)).replace('"', "'")
    assert "all 45 made again" in str(LanceCollection.check(archive, every_vector=True))


def test_a_matcher_that_is_away_is_no_damage(archive: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(archive, tmp_path / "a"))
    about = manifest.read_manifest(copy)
    for where in (str(tmp_path / "none"), "x" * 5000, "a\0b"):
        replace(about, matcher_folder=where).write(copy)
        found = LanceCollection.check(copy)
        assert found.whole
        assert "finite, but not compared" in str(found)
        with pytest.raises(MatchloomError, match="which is not there; give its new place") as told:
            LanceCollection.open(copy).search("baden")
        assert len(str(told.value)) < 700


def test_links_are_refused(archive: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    for name in ("archive.json", "pairs-1.seals", "pairs-1.lance"):
        copy = Path(shutil.copytree(archive, tmp_path / "a"))
        path = copy / name
        if path.is_dir():
            path.rename(tmp_path / "table")
            path.symlink_to(tmp_path / "table")
        else:
            path.unlink()
            path.symlink_to(elsewhere)
        with pytest.raises(MatchloomError, match="is a symbolic link; an archive has none"):
            LanceCollection.open(copy).add(made_pairs(1))
        assert elsewhere.read_text() == "mine"
        shutil.rmtree(copy)
    copy = Path(shutil.copytree(archive, tmp_path / "a"))
    one = next((copy / "pairs-1.lance" / "data").iterdir())
    one.rename(tmp_path / "data")
    one.symlink_to(tmp_path / "data")
    assert "is a symbolic link" in str(LanceCollection.check(copy))


def test_a_pipe_in_the_place_of_a_file_stops_nobody(archive: Path, tmp_path: Path) -> None:
    for name, told in ((".lock", "is no file, so"), ("archive.json", "is no file, so")):
        copy = Path(shutil.copytree(archive, tmp_path / "a"))
        (copy / name).unlink(missing_ok=True)
        os.mkfifo(copy / name)
        with pytest.raises(MatchloomError, match=told):
            LanceCollection.open(copy).add(made_pairs(1))
        shutil.rmtree(copy)


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"format": 4, "tokenizer": ' + '{"kind": ' * 100_000,
        '{"format": ' + "9" * 5000 + "}",
        '{"format": 1e400}',
        '{"format": -1}',
        "3",
        " " * 2_000_000,
        b"\xff\xfe",
        {"alpha": "NaN"},
        {"alpha": float("nan")},
        {"trained_on": 2**70},
        {"written": -1},
        {"vector_size": 2**40},
        {"vector_size": 0},
        {"table": "pairs-" + "1" * 5000},
        {"table": "pairs-1\n"},
        {"tokenizer": {"kind": "klingon"}},
        {"tokenizer": {"kind": "english", "max_words": 0}},
        {"tokenizer": None},
        {"matcher": "x" * 1000},
        {"surplus": 1},
    ],
)
def test_settings_of_wrong_kinds_are_one_short_line(tmp_path: Path, content: object) -> None:
    if isinstance(content, dict):
        content = json.dumps({"format": 4, "table": "pairs-1", "tokenizer": {"kind": "english"}, **content})
    (tmp_path / "archive.json").write_bytes(content if isinstance(content, bytes) else str(content).encode())
    with pytest.raises(MatchloomError, match=r"archive\.json is damaged") as told:
        LanceCollection.open(tmp_path)
    assert len(str(told.value)) < 500


class RustPanic(BaseException):
    """As LanceDB's."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("lance error: IO: No space left on device (os error 28), a/b.rs:1:2"), "make room on the disk"),
        (OSError(122, "Disk quota exceeded"), "make room in your quota"),
        (RuntimeError("lance error: IO: Permission denied (os error 13)"), "check the permissions"),
        (RustPanic("rust future panicked: unknown error"), "LanceDB cannot read its files"),
        (
            RuntimeError("lance error: bad\nmagic"),
            r"\(lance error: bad magic\); if files .* 'matchloom doctor",
        ),
    ],
)
def test_what_lancedb_says_is_one_line_with_the_right_remedy(error: BaseException, told: str) -> None:
    with pytest.raises(MatchloomError, match=told) as found, told_in_one_line(Path("a")):
        raise error
    assert "\n" not in str(found.value)
    assert ("index the pairs again" in str(found.value)) == ("doctor" in str(found.value))


def test_a_damaged_version_is_told_before_lancedb_stumbles_over_it(archive: Path, tmp_path: Path) -> None:
    newest = min((archive / "pairs-1.lance" / "_versions").glob("*.manifest")).name
    for at in range(0, 600, 60):
        copy = Path(shutil.copytree(archive, tmp_path / "a"))
        path = copy / "pairs-1.lance" / "_versions" / newest
        content = bytearray(path.read_bytes())
        content[at % len(content)] ^= 0x40
        path.write_bytes(content)
        with pytest.raises(MatchloomError, match=r"is damaged \(version [0-9]+ of its table"):
            LanceCollection.open(copy)
        shutil.rmtree(copy)


def test_a_folder_that_cannot_be_listed_is_not_written(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(archive, tmp_path / "a"))
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("_versions"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    index = LanceCollection.open(copy)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        with pytest.raises(MatchloomError, match="_versions cannot be read: Permission denied"):
            index.add(made_pairs(1))
    assert LanceCollection.check(copy).whole


def test_a_key_that_is_there_twice_is_found(tmp_path: Path) -> None:
    index = LanceCollection.create(tmp_path / "archive")
    index.add(made_pairs(5))
    with index._archive.changing(["twice"]) as store:
        store.append(pa.Table.from_batches([next(store.batches(2))]))
    found = LanceCollection.check(tmp_path / "archive")
    assert not found
    assert any("2 have no id of their own" in one.text for one in found.findings)
