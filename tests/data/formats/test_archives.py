"""Zip archives and folders of files: what is in them, and what must not come out of them."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from matchloom.artifact.manifest import manifest_name
from matchloom.data.formats import bounded_zip, read_pairs
from tests.data.formats.reading import FILES, read
from tests.refusing import refused

CONTENT = {
    "faq.csv": "Frage;Antwort;url\nwarum?;darum;/x\n",
    "more/faq.md": "# why?\nbecause\n",
    "more/logo.png": "no text",
    "notes.csv": "some,columns,of,others\n1,2,3,4\n",
    "old.txt": "how?\tso\n",
}


def folder_of(path: Path) -> Path:
    for name, content in CONTENT.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content)
    (path / ".hidden.csv").write_text("q,a\nhidden,hidden\n")
    return path


def zip_of(path: Path, content: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return path


@pytest.mark.parametrize("kind", ["zip", "folder"])
def test_all_files_of_a_folder_or_archive(tmp_path: Path, kind: str) -> None:
    path = folder_of(tmp_path / "faq") if kind == "folder" else zip_of(tmp_path / "faq.zip", CONTENT)
    found = read(path)
    assert found.pairs == [("warum?", "darum"), ("why?", "because"), ("how?", "so")]
    assert found.places == ["faq.csv, line 2", "more/faq.md, line 1", "old.txt, line 1"]
    assert found.own[0] == {"url": "/x"}
    assert [one.place for one in found.left_out] == ["more/logo.png", "notes.csv"]
    assert found.notes == [
        "old.txt: the first line names no column that is known; it is taken as a pair, the columns as query, text"
    ]


@pytest.mark.parametrize("kind", ["zip", "folder"])
def test_a_bad_row_inside_names_the_file_as_the_user_knows_it(tmp_path: Path, kind: str) -> None:
    if kind == "folder":
        path = folder_of(tmp_path / "faq")
        (path / "faq.csv").write_text("q,a\nx,y\nz\n")
    else:
        path = zip_of(tmp_path / "faq.zip", {"deep/faq.csv": "q,a\nx,y\nz\n"})
    with refused("bad_row", path, "faq.csv", "line 3") as error:
        list(read_pairs(path))
    assert "matchloom-" not in str(error.value)


def test_sheets_inside_an_archive(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(FILES / "libreoffice.xlsx", "sub/faq.xlsx")
    assert read(path).places[0] == "sub/faq.xlsx, sheet 'faq_src', row 2"


def test_names_are_never_paths(tmp_path: Path) -> None:
    names = ["../../up.csv", "/root.csv", "C:\\x\\y.csv", "a/../../b.csv", "x" * 300 + ".csv", "nul\x07.csv"]
    (tmp_path / "in").mkdir()
    path = zip_of(tmp_path / "in" / "p.zip", dict.fromkeys(names, "q,a\nx,y\n"))
    before = sorted(tmp_path.rglob("*"))
    assert len(read(path).pairs) == len(names)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bomb_is_refused_before_it_is_unpacked_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_zip, "_BYTES", 1_000_000)
    path = zip_of(tmp_path / "bomb.zip", {"a.csv": "q,a\n" + "x,y\n" * 1_000_000})
    assert path.stat().st_size < 20_000
    with refused("too_large", path):
        list(read_pairs(path))
    monkeypatch.setattr(bounded_zip, "_MEMBERS", 2)
    with refused("too_large", path.with_name("many.zip")):
        list(read_pairs(zip_of(path.with_name("many.zip"), {f"{n}.csv": "q,a\nx,y\n" for n in range(3)})))


def test_an_archive_in_an_archive_and_links_are_not_opened(tmp_path: Path) -> None:
    inner = zip_of(tmp_path / "inner.zip", {"a.csv": "q,a\nx,y\n"}).read_bytes()
    path = tmp_path / "outer.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inner.zip", inner)
        link = zipfile.ZipInfo("link.csv")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    with refused("no_data", path):
        list(read_pairs(path))


def test_wrong_archives_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "p.zip"
    path.write_bytes(b"PK no zip")
    with refused("damaged", path):
        list(read_pairs(path))
    rows = "".join(f"x{n},y{n * n}\n" for n in range(999))
    whole = zip_of(tmp_path / "w.zip", {"a.csv": f"q,a\n{rows}"}).read_bytes()
    path.write_bytes(whole[:200] + bytes(60) + whole[260:])
    with refused("damaged", path):
        list(read_pairs(path))
    with refused("no_data", tmp_path / "empty.zip"):
        list(read_pairs(zip_of(tmp_path / "empty.zip", {})))
    (tmp_path / "none").mkdir()
    with refused("no_data", tmp_path / "none"):
        list(read_pairs(tmp_path / "none"))


def test_an_encrypted_member_is_one_line(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "p.zip", {"a.csv": "q,a\nx,y\n"})
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    path.write_bytes(content)
    with refused("unreadable", path, "a.csv"):
        list(read_pairs(path))


def test_what_matchloom_made_is_no_source(tmp_path: Path) -> None:
    (tmp_path / manifest_name("collection")).write_text("{}")
    with refused("wrong_format", tmp_path):
        list(read_pairs(tmp_path))
