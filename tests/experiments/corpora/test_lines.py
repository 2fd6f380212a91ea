from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from experiments.corpora.lines import (
    document,
    numbered_lines,
    records,
    rows,
    spaced,
    write_records,
    write_table,
    zero_or_one,
)
from matchloom.types import MatchloomError


class Knot(msgspec.Struct):
    id: str
    size: int


def test_plain_and_gzip_read_alike(tmp_path: Path) -> None:
    # A byte order mark and Windows line ends go; the rarer separators of Unicode are part of a text.
    content = "\ufeffone\u2028more\r\n\nthree".encode()
    (tmp_path / "a.tsv").write_bytes(content)
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(content))
    expected = [(1, "one\u2028more"), (2, ""), (3, "three")]
    assert list(numbered_lines(tmp_path / "a.tsv")) == expected
    assert list(numbered_lines(str(tmp_path / "a.tsv.gz"))) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "gut\nschön".encode("latin-1"), r"a\.tsv, line 2: byte 4 \(0xf6\) is not UTF-8"),
        ("a.gz", gzip.compress(b"text\n" * 1000, mtime=0)[:-12], r"a\.gz is damaged or cut off"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MatchloomError, match=message):
        list(numbered_lines(tmp_path / name))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(MatchloomError, match=r"none\.tsv cannot be read: No such file"):
        list(numbered_lines(tmp_path / "none.tsv"))
    with pytest.raises(MatchloomError, match="cannot be read"):
        list(numbered_lines(tmp_path))


def test_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text('a\tb\n\n"x\ty"\n', encoding="utf-8")
    assert list(rows(path, ("a", "b"), header=True)) == [(3, ['"x', 'y"'])]
    assert [number for number, _ in rows(path, ("a", "b"), header=False)] == [1, 3]
    with pytest.raises(MatchloomError, match=r"line 1: expected the header \['a', 'c'\], found 'a\\tb'"):
        list(rows(path, ("a", "c"), header=True))
    with pytest.raises(MatchloomError, match=r"line 1: expected 3 columns separated by tabs \(a, b, c\), found 2"):
        list(rows(path, ("a", "b", "c"), header=False))
    path.write_text("", encoding="utf-8")
    with pytest.raises(MatchloomError, match="empty file"):
        list(rows(path, ("a", "b"), header=True))


def test_records(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "a", "size": 3, "more": null}\n\n{"id": "b"}\n', encoding="utf-8")
    stream = records(path, Knot)
    assert next(stream) == (1, Knot("a", 3))
    with pytest.raises(MatchloomError, match=r"a\.jsonl, line 3: .*missing required field `size`"):
        next(stream)
    path.write_text('{"id": "a", "si', encoding="utf-8")
    with pytest.raises(MatchloomError, match=r"line 1: .*truncated"):
        next(records(path, Knot))
    path.write_text('{"more": ' + "[" * 50_000, encoding="utf-8")
    with pytest.raises(MatchloomError, match=r"a\.jsonl, line 1: .*recursion"):
        next(records(path, Knot))


def test_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(gzip.compress(b'\xef\xbb\xbf[\n{"id": "a", "size": 3}\n]'))
    assert document(path, list[Knot]) == [Knot("a", 3)]
    for content, message in (
        (b'[\n{"id": "a", "size": 3},\n', r", line 3: .*truncated"),
        (b'[\n{"id": "a",\n!', r", line 3: .*malformed"),
        (b'[{"id": "a\xff", "size": 3}]', r", line 1: "),
        (b'[{"id": "a"}]', r": .*missing required field `size` - at `\$\[0\]`"),
        (b"[" * 50_000, r", line 1: .*recursion|: Expected `object`, got `array`"),
        ("[]".encode("utf-16"), " is UTF-16"),
    ):
        path.write_bytes(content)
        with pytest.raises(MatchloomError, match=rf"a\.json{message}"):
            document(path, list[Knot])
    monkeypatch.setenv("MATCHLOOM_MAX_LINE", "10")
    path.write_bytes(gzip.compress(b" " * 2000))
    with pytest.raises(MatchloomError, match=r"a\.json: more than 1,000 bytes"):
        document(path, list[Knot])


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    lines = [["a", spaced(" one\ttwo\n three\u00a0 ")], ["b", ""]]
    assert write_table(tmp_path / "a.tsv.gz", lines) == 2
    assert [fields for _, fields in rows(tmp_path / "a.tsv.gz", ("x", "y"), header=False)] == lines
    assert lines[0][1] == "one two three"
    assert write_records(tmp_path / "a.jsonl", iter([Knot("a", 1), Knot("b", 2)])) == 2
    assert [knot.size for _, knot in records(tmp_path / "a.jsonl", Knot)] == [1, 2]
    with pytest.raises(MatchloomError, match=r"b\.tsv was not written: .* is half a character"):
        write_table(tmp_path / "b.tsv", [["\ud800"]])
    assert not (tmp_path / "b.tsv").exists()


def test_labels() -> None:
    assert [zero_or_one(label, "f", 1) for label in "01"] == [0.0, 1.0]
    for label in ("", "2", "yes", "1.0"):
        with pytest.raises(MatchloomError, match=f"f, line 9: expected a label of 0 or 1, found '{label}'"):
            zero_or_one(label, "f", 9)
