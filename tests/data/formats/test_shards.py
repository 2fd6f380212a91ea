"""Folders of Parquet shards: read one by one; a bad one is named, and nothing is left out silently."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matchloom
from matchloom.cli import main
from matchloom.data.formats.pairs import read_own_columns
from matchloom.data.formats.parquet import parquet_rows
from matchloom.data.formats.shards import find_shards
from matchloom.data.formats.sources import as_pairs
from matchloom.types import MatchloomError, Pair


def write(path: Path, rows: int, first: int = 0, **more: list[object]) -> None:
    numbers = range(first, first + rows)
    columns = {"query": [f"what is {n}" for n in numbers], "text": [f"it is {n}" for n in numbers]}
    pq.write_table(pa.table({**columns, **more}), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three shards of four rows, as an engine writes them."""
    folder = tmp_path / "pairs.parquet"
    (folder / "part=b").mkdir(parents=True)
    for n, name in enumerate(("a.parquet", "part=b/b.parquet", "c.parquet")):
        write(folder / name, 4, 4 * n)
    (folder / "_SUCCESS").touch()
    (folder / ".a.parquet.crc").touch()
    return folder


def test_a_folder_of_shards_is_one_stream(folder: Path) -> None:
    pairs = list(matchloom.read_pairs(folder))
    assert sorted(pair.query for pair in pairs) == sorted(f"what is {n}" for n in range(12))
    assert all(pair.query_id and pair.text_id for pair in pairs)
    assert [own.names for _, own in read_own_columns(folder)] == [["query", "text"]] * 12
    shards = find_shards(folder)
    assert shards is not None
    assert len(shards) == 12


def test_several_files_are_one_stream(folder: Path) -> None:
    paths = [folder / "c.parquet", str(folder / "a.parquet")]
    assert [pair.query for pair in as_pairs(paths)] == [f"what is {n}" for n in (8, 9, 10, 11, 0, 1, 2, 3)]
    with pytest.raises(MatchloomError, match=r"item 1"):
        list(as_pairs([*paths, "other.tsv"]))


def test_other_folders_are_what_they_were(folder: Path) -> None:
    (folder / "more.tsv").write_text("query\ttext\nhow?\tso\n", encoding="utf-8")
    assert find_shards(folder) is None
    assert find_shards([Pair("a", "b")]) is None


def test_ids_must_differ_within_a_shard_only(folder: Path) -> None:
    ids = {"query_id": list("abcd"), "text_id": list("efgh")}
    for name in ("a.parquet", "c.parquet"):
        write(folder / name, 4, **ids)
    assert len(list(matchloom.read_pairs(folder))) == 12
    write(folder / "c.parquet", 4, query_id=list("abca"), text_id=list("efge"))
    with pytest.raises(MatchloomError, match=r"c\.parquet, row 4"):
        list(matchloom.read_pairs(folder))


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def other_columns(path: Path) -> None:
    pq.write_table(pa.table({"one": ["a"], "two": ["b"], "three": ["c"]}), path)


def no_bytes(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("spoil", "code"), [(cut_off, "damaged"), (other_columns, "bad_columns"), (no_bytes, "damaged")]
)
def test_a_bad_shard_is_named_before_any_row_is_read(folder: Path, spoil: Callable[[Path], None], code: str) -> None:
    spoil(folder / "c.parquet")
    for read in (matchloom.read_pairs, as_pairs):
        with pytest.raises(MatchloomError, match=r"c\.parquet") as error:
            next(read(folder))
        assert error.value.code == code


def test_a_shard_without_rows_is_told_of(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(folder / "c.parquet", 0)
    with caplog.at_level(logging.WARNING):
        assert len(list(matchloom.read_pairs(folder))) == 8
    assert "c.parquet" in caplog.text
    for name in ("a.parquet", "part=b/b.parquet"):
        write(folder / name, 0)
    with pytest.raises(MatchloomError, match="empty"):
        list(matchloom.read_pairs(folder))


@pytest.mark.parametrize(("vanish", "code"), [(True, "missing"), (False, "altered")])
def test_a_shard_that_vanishes_or_changes_meanwhile_is_named(folder: Path, vanish: bool, code: str) -> None:
    pairs = matchloom.read_pairs(folder)
    next(pairs)
    if vanish:
        (folder / "c.parquet").unlink()
    else:
        write(folder / "c.parquet", 5)
    with pytest.raises(MatchloomError, match=r"c\.parquet") as error:
        list(pairs)
    assert error.value.code == code


def test_a_shard_that_changes_while_it_is_read_is_named(folder: Path) -> None:
    pairs = matchloom.read_pairs(folder)
    next(pairs)
    write(folder / "a.parquet", 4, 50)
    with pytest.raises(MatchloomError, match=r"a\.parquet") as error:
        list(pairs)
    assert error.value.code == "altered"


def test_commands_name_the_shard_and_leave_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut_off(folder / "c.parquet")
    out = folder.parent / "run"
    commands = (
        ["score", "overlap", str(folder), "--out", str(out)],
        ["mine", str(folder), "--out", f"{out}.tsv"],
        ["train", str(folder), "--out", str(out), "--window", "5"],
        ["index", str(out), str(folder)],
    )
    for command in commands:
        assert main(command if command[0] != "score" else [*command[:-1], f"{out}.tsv"]) == 2
        told = capsys.readouterr().err
        assert "c.parquet" in told
        assert told.count("\n") == 1
        assert not Path(f"{out}.tsv").exists()


def test_what_reads_everything_has_a_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("matchloom.data.formats.shards.IN_MEMORY", 10)
    monkeypatch.setattr("matchloom.fitting.run.MOST", 10)
    for name, *given in (["evaluate", "overlap"], ["fit", "--out", tmp_path / "fit"], ["index", tmp_path / "faq"]):
        command = [name, *map(str, given), str(folder)]
        assert main(command) == 2
        assert "12 pairs" in capsys.readouterr().err


def test_one_thread_alone_reads_a_file_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others would still read it where the first column is damaged, and abort a process that ends meanwhile."""
    path = tmp_path / "part.parquet"
    pq.write_table(pa.table({"query": ["a"] * 5000, "text": ["b"] * 5000, "url": ["c"] * 5000}), path)
    seen: set[int] = set()

    class Watched(io.FileIO):
        def readinto(self, buffer: Any) -> int | None:
            seen.add(threading.get_ident())
            return super().readinto(buffer)

        def read(self, size: int | None = -1) -> Any:
            seen.add(threading.get_ident())
            return super().read(size)

    @contextmanager
    def opened(path: Path) -> Iterator[Watched]:
        with Watched(path) as stream:
            yield stream

    monkeypatch.setattr("matchloom.data.formats.parquet.open_bytes", opened)
    assert len(list(parquet_rows(path, None))) == 5000
    assert seen == {threading.get_ident()}
