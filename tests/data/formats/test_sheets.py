"""Sheets that real programs wrote, and some that nobody should."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from matchloom.data.formats import read_pairs, write_pairs
from matchloom.types import Pair
from tests.data.formats.reading import FILES, read
from tests.refusing import refused

pytest.importorskip("python_calamine")


@pytest.mark.parametrize("name", ["libreoffice.xlsx", "libreoffice.ods"])
def test_what_libreoffice_wrote(name: str) -> None:
    found = read(FILES / name)
    assert found.pairs == [
        ("Wie ändere ich mein Passwort?", "Unter Einstellungen, Konto."),
        ("Wo ist meine Rechnung?", "Rechnungen kommen\nam Monatsersten."),
        ("", "Bitte schreiben Sie uns."),  # LibreOffice ran "=1+1 rechnet falsch?" as a formula
    ]
    assert found.own[0] == {"Kategorie": "Konto", "Nummer": "1", "Stand": "2024-05-01"}
    assert found.places[0] == "sheet 'faq_src', row 2"


def test_merged_cells_a_title_above_and_a_sheet_beside() -> None:
    found = read(FILES / "openpyxl_merged.xlsx")
    assert found.pairs == [
        ("How do I pay?", "By card or invoice."),
        ("Which cards do you take?", "By card or invoice."),
        ("When do you open?", "At nine."),
        ("404", "That page is gone."),
    ]
    assert [one.place for one in found.left_out] == ["sheet 'Read me'", "sheet 'FAQ', row 2"]
    assert found.own[0] == {"URL": "/pay"}


@pytest.mark.parametrize("name", ["p.xlsx", "p.ods"])
def test_wrong_files_are_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"query,text\na,b\n")
    with refused("damaged", path):
        list(read_pairs(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "no sheet")
    with refused("damaged", path):
        list(read_pairs(path))
    whole = (FILES / f"libreoffice{path.suffix}").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with refused("damaged", path):
        list(read_pairs(path))
    with refused("wrong_format", "p.xlsx.gz"):
        list(read_pairs(tmp_path / "p.xlsx.gz"))
    with refused("wrong_format", path):
        write_pairs(path, [Pair("a", "b")])


def rewritten(path: Path, source: Path, member: str, old: bytes, new: bytes) -> Path:
    """A copy of a sheet with something else in one of its files."""
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as after:
        for info in before.infolist():
            content = before.read(info)
            if info.filename == member:
                assert old in content
                content = content.replace(old, new, 1)
            after.writestr(info.filename, content)
    return path


def test_a_cell_far_away_does_not_fill_the_memory(tmp_path: Path) -> None:
    far = b'<row r="1048576"><c r="XFD1048576" t="n"><v>1</v></c></row></sheetData>'
    path = rewritten(
        tmp_path / "far.xlsx", FILES / "libreoffice.xlsx", "xl/worksheets/sheet1.xml", b"</sheetData>", far
    )
    with refused("too_large", path, "sheet1.xml"):
        list(read_pairs(path))
    cell = b'<table:table-cell office:value-type="float" office:value="1"><text:p>1</text:p></table:table-cell>'
    rows = b'<table:table-row table:number-rows-repeated="1048000">' + 40 * cell + b"</table:table-row></table:table>"
    ods = rewritten(tmp_path / "far.ods", FILES / "libreoffice.ods", "content.xml", b"</table:table>", rows)
    with refused("too_large", ods, "content.xml"):
        list(read_pairs(ods))


def test_no_questions_in_any_sheet(tmp_path: Path) -> None:
    path = rewritten(
        tmp_path / "p.xlsx",
        FILES / "libreoffice.xlsx",
        "xl/sharedStrings.xml",
        b"Frage",
        b"Wer",
    )
    with refused("bad_columns", path, "Antwort", "columns="):
        list(read_pairs(path))
    assert next(read_pairs(path, columns={"query": "Wer"})).text == "Unter Einstellungen, Konto."


def test_xml_that_is_cut_off_or_odd_never_reaches_the_reader(tmp_path: Path) -> None:
    """Its reader takes the first two for ever, or all the memory."""
    ods = rewritten(tmp_path / "p.ods", FILES / "libreoffice.ods", "content.xml", b"</office:automatic-styles>", b"")
    with refused("damaged", ods, "content.xml"):
        list(read_pairs(ods))
    sheet = "xl/worksheets/sheet1.xml"
    odd = rewritten(tmp_path / "p.xlsx", FILES / "libreoffice.xlsx", sheet, b'r="A2"', b'r="A2222222222"')
    with refused("damaged", odd, "A2222222222"):
        list(read_pairs(odd))
    entity = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><worksheet'
    typed = rewritten(tmp_path / "q.xlsx", FILES / "libreoffice.xlsx", sheet, b"<worksheet", entity)
    with refused("damaged", typed, "document type"):
        list(read_pairs(typed))


def test_spaces_that_are_told_by_their_number_do_not_fill_the_memory(tmp_path: Path) -> None:
    """The reader of sheets would make two billion of them, and end the process."""
    path = tmp_path / "p.ods"
    with zipfile.ZipFile(FILES / "libreoffice.ods") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "content.xml":
                content = content.replace(b"<text:p>", b'<text:p><text:s text:c="2000000000"/>')
            new.writestr(name, content)
    with refused("damaged", path, "content.xml"):
        read(path)
