from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from experiments.corpora.xml_elements import elements, inner_text
from matchloom.types import MatchloomError

FEED = "<?xml version='1.0' encoding='UTF-8'?>\n<feed>\nidle\n<loom n='1'><name>One &amp;\n a  half</name></loom>\n"
FEED += "<!-- between -->\n<other><name>not this</name></other>\n<loom n='2'><part><name>deep</name></part></loom>\n"
FEED += "</feed>\n"


def write(folder: Path, content: str | bytes, name: str = "a.xml") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(*paths: Path) -> list[tuple[str, str | None, str]]:
    return [(where, one.get("n"), inner_text(one, "name")) for where, one in elements(paths, "loom")]


def test_each_element_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, FEED)
    assert read(path) == [(f"{path}, line 4", "1", "One & a half"), (f"{path}, line 8", "2", "")]
    assert [where for where, *_ in read(write(tmp_path, gzip.compress(FEED.encode()), "a.xml.gz"))]


@pytest.mark.parametrize("cut", [3, 40, 70, 120, len(FEED) - 2])
def test_parts_of_one_file_are_read_as_one(tmp_path: Path, cut: int) -> None:
    parts = [write(tmp_path, FEED[:cut], "a.part1"), write(tmp_path, gzip.compress(FEED[cut:].encode()), "a.part2.gz")]
    assert [entry[1:] for entry in read(*parts)] == [("1", "One & a half"), ("2", "")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (FEED[:90], r"line 5: no whole XML here \(unclosed token\)"),
        (FEED.replace("</name>", "", 1), r"line 5: no whole XML here \(mismatched tag\)"),
        (FEED.replace("&amp;", "&other;"), r"line 4: no whole XML here \(undefined entity\)"),
        (FEED.replace("deep", "sch\xf6n").encode("latin-1"), r"line 8: no whole XML here \(not well-formed"),
        ("not XML", r"line 1: no whole XML here"),
        ("", r"line 1: no whole XML here \(no element found\)"),
        ("<feed><weft/></feed>", "a.xml: no <loom> in it"),
        (FEED.encode("utf-16"), "UTF-16"),
        (FEED.replace("UTF-8", "ISO-8859-1"), r"line 1: encoding 'ISO-8859-1'; convert the file to UTF-8"),
        (FEED.replace("UTF-8", "no-such"), r"line 1: encoding 'no-such'"),
    ],
)
def test_what_is_not_whole_is_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(MatchloomError, match=message):
        read(write(tmp_path, content))


@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">',
        '<!ENTITY c SYSTEM "secret.txt">',
        '<!ENTITY % c SYSTEM "http://127.0.0.1/x.dtd"> %c;',
    ],
)
def test_no_document_type_is_read(tmp_path: Path, declared: str) -> None:
    write(tmp_path, "secret", "secret.txt")
    path = write(tmp_path, f"<!DOCTYPE feed [{declared}]>\n<feed><loom><name>&c;</name></loom></feed>")
    with pytest.raises(MatchloomError, match=r"a\.xml, line 1: a document type .* is not read"):
        read(path)
    with pytest.raises(MatchloomError, match="a document type"):
        read(write(tmp_path, '<!DOCTYPE feed SYSTEM "feed.dtd"><feed><loom/></feed>'))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<feed><loom>" + "weft " * 40_000, "a <loom> of more than 100,000 characters"),
        ("<feed><loom>" + "<a>" * 100_001, "a <loom> of more than 100,000 characters"),
        ("<feed><loom n='" + "x" * 300_000, "a tag or comment of more than 100,000 bytes"),
        ("<feed><!--" + "x" * 300_000, "a tag or comment of more than 100,000 bytes"),
    ],
)
def test_nothing_grows_without_end(tmp_path: Path, content: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATCHLOOM_MAX_LINE", "100000")
    with pytest.raises(MatchloomError, match=f"a.xml.gz, line 1: {message}"):
        read(write(tmp_path, gzip.compress(content.encode()), "a.xml.gz"))


def test_what_is_between_elements_may_be_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATCHLOOM_MAX_LINE", "100000")
    many = "<feed>" + "<loom><name>one</name></loom> idle\n" * 9_000 + "</feed>"
    assert len(read(write(tmp_path, many))) == 9_000
