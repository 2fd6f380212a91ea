from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from experiments.corpora.reuters import read_reuters, write_reuters
from matchloom.types import MatchloomError

STORY = (
    '<REUTERS TOPICS="NO" NEWID="{}">\n<TEXT>&#2;\n'
    "<TITLE>{}</TITLE>\n<BODY>{}\n Reuter\n&#3;</BODY></TEXT>\n</REUTERS>\n"
)
FIRST = "The weavers of the U.S. town said they would stop work"
SECOND = "as wool had risen to a price that no mill could pay."
BODY = f"""{FIRST}, {SECOND} It was
cold.
    Smith &amp; Sons &lt;SMI> of Bath had sold its last looms at caf\xe9s
by Monday, so that in the end there was nothing left to weave upon
    Eight words stand here before this one comma, but not behind it.
    There were 1,000 of them in the town hall and they talked for a whole long day.
    A clause of eight words or more is here, another clause of that very same length is here, and a third."""
EXPECTED = {
    (FIRST, SECOND),
    (
        "Smith & Sons <SMI> of Bath had sold its last looms at caf\xe9s by Monday",
        "so that in the end there was nothing left to weave upon",
    ),
}


def write_sgml(folder: Path) -> Path:
    (folder / "part").mkdir(parents=True)
    stories = STORY.format(2, "A, B", BODY) + STORY.format(1, "C", f"{FIRST}, {SECOND.upper()}")
    (folder / "part" / "reut2-000.sgm").write_bytes(f"<!DOCTYPE lewis>\n{stories}".encode("latin-1"))
    (folder / "README.txt").write_text(
        f"{FIRST}, which is no story but a sentence of a read-me file.", encoding="utf-8"
    )
    return folder


def archive(folder: Path) -> Path:
    path = folder.parent / "stories.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, ".")
    return path


def test_sgml(tmp_path: Path) -> None:
    folder = write_sgml(tmp_path / "reuters")
    pairs = read_reuters(folder)
    assert {pair[:2] for pair in pairs} == EXPECTED
    assert len(pairs) == 2  # the second telling of the first sentence, in capitals, is left out
    assert {pair.group for pair in pairs} == {"2"}
    assert all(pair.label == 1.0 and pair.query_id and pair.text_id for pair in pairs)
    assert read_reuters(archive(folder)) == pairs


def test_plain_stories(tmp_path: Path) -> None:
    folder = tmp_path / "c50"
    for name, text in (
        ("b", f"{FIRST}, {SECOND}\r\nIt rained.\r\n"),
        ("a", f'"It is late," he said. {FIRST}, {SECOND}'),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "1newsML.txt").write_bytes(text.encode())
    (pair,) = read_reuters(folder)
    assert pair[:2] == (FIRST, SECOND)
    assert pair.group == "a/1newsML.txt"  # the first by name, whatever the order of the archive
    assert [found.group for found in read_reuters(archive(folder))] == ["./a/1newsML.txt"]


@pytest.mark.parametrize(("words", "kept"), [(7, False), (8, True), (28, True), (29, False)])
def test_length_of_clauses(tmp_path: Path, words: int, kept: bool) -> None:
    path = tmp_path / "a.txt"
    other = " ".join(["warp"] * 10)
    path.write_text(" ".join(["weft"] * words) + f", {other}.", encoding="utf-8")
    assert bool(read_reuters(tmp_path)) == kept
    path.write_text(f"{other}, " + " ".join(["weft"] * words) + ".", encoding="utf-8")
    assert bool(read_reuters(tmp_path)) == kept


def test_malformed(tmp_path: Path) -> None:
    with pytest.raises(MatchloomError, match=r"none\.tar\.gz: cannot be read \(No such file"):
        read_reuters(tmp_path / "none.tar.gz")
    with pytest.raises(MatchloomError, match=r"no \.sgm and no \.txt file in it"):
        read_reuters(tmp_path)
    whole = archive(write_sgml(tmp_path / "in" / "reuters")).read_bytes()
    for name, content in (("cut.tar.gz", whole[: len(whole) // 2]), ("no.tar.gz", b"no archive")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(MatchloomError, match=f"{name}: not a folder or a whole tar archive"):
            read_reuters(tmp_path / name)


def test_wrong_encoding(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_bytes("fine\nschön".encode("latin-1"))
    with pytest.raises(MatchloomError, match=r"story\.txt, line 2: not UTF-8"):
        read_reuters(tmp_path)


def test_archive_without_stories(tmp_path: Path) -> None:
    path = tmp_path / "empty.tar"
    with tarfile.open(path, "w") as tar:
        tar.addfile(tarfile.TarInfo("photo.jpg"), io.BytesIO())
    with pytest.raises(MatchloomError, match=r"empty\.tar: no \.sgm and no \.txt"):
        read_reuters(path)


@pytest.mark.data
@pytest.mark.parametrize(("name", "count"), [("reuters21578", 9382), ("reuters_c50", 11217)])
def test_real_counts(data_dir: Path, name: str, count: int) -> None:
    # Published as about 9,300 and 11,500; the exact figure hangs on where sentences are said to end.
    pairs = read_reuters(data_dir / "reuters" / f"{name}.tar.gz")
    assert len(pairs) == len({pair[:2] for pair in pairs}) == count


def test_stories_are_packed_for_the_tables(tmp_path: Path) -> None:
    folder = write_sgml(tmp_path / "reuters")
    assert write_reuters(folder, tmp_path) == {tmp_path / "reuters21578.tar.gz": 1}
    assert read_reuters(tmp_path / "reuters21578.tar.gz") == read_reuters(folder)
    before = (tmp_path / "reuters21578.tar.gz").read_bytes()
    assert write_reuters(archive(folder), tmp_path)
    assert len((tmp_path / "reuters21578.tar.gz").read_bytes()) > 100
    assert write_reuters(folder, tmp_path)
    assert (tmp_path / "reuters21578.tar.gz").read_bytes() == before
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.txt").write_text(f"{FIRST}, {SECOND}\n")
    assert write_reuters(plain, tmp_path) == {tmp_path / "reuters_c50.tar.gz": 1}
    assert read_reuters(tmp_path / "reuters_c50.tar.gz") == read_reuters(plain)
