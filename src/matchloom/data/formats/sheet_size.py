"""How large a sheet is before it is read: its reader makes room for every cell up to the last, filled or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from matchloom.data.formats.bounded_zip import open_zip
from matchloom.types import MatchloomError

_CELLS = 20_000_000
_TAG = 1 << 20  # bytes of a tag; longer ones are no sheet's
_XLSX = re.compile(rb"<(?:\w{1,20}:)?(row|c)(?=[\s/>])([^<>]*)>")
_REFERENCE = re.compile(rb"""\br\s*=\s*["']([A-Z]{0,3})([0-9]{0,7})["']""")
_ODS = re.compile(rb"<(/?)(?:\w{1,20}:)?(table|table-row|table-cell|covered-table-cell|p)(?=[\s/>])([^<>]*)>")
_REPEATED = re.compile(rb"""number-(?:rows|columns)-repeated\s*=\s*["']([0-9]{1,12})["']""")


def check_sheets(path: Path) -> None:
    """Refuse a file that unpacks to too much, or whose sheets would take too many cells."""
    with open_zip(path, "sheet (.xlsx or .ods)") as archive:
        for member in archive.files():
            chunks = archive.chunks(member)
            if member.filename.startswith("xl/worksheets/"):
                cells = _xlsx_cells(_tags(path, chunks, _XLSX))
            elif member.filename == "content.xml":
                cells = _ods_cells(_tags(path, chunks, _ODS))
            else:
                cells = sum(0 for _ in chunks)  # counts what it unpacks to
            if cells > _CELLS:
                raise MatchloomError(
                    f"{path}: {member.filename} spans {cells:,} cells; at most {_CELLS:,} are read: remove what stands "
                    "far below or far to the right",
                    code="too_large",
                )


def _tags(path: Path, chunks: Iterable[bytes], kind: re.Pattern[bytes]) -> Iterator[re.Match[bytes]]:
    left = b""
    for chunk in chunks:
        left += chunk
        end = left.rfind(b">") + 1
        yield from kind.finditer(left[:end])
        left = left[end:]
        if len(left) > _TAG:
            raise MatchloomError(f"{path}: a text or tag inside is longer than {_TAG:,} bytes", code="too_large")


def _xlsx_cells(tags: Iterator[re.Match[bytes]]) -> int:
    """Rows times columns up to the last cell that has one."""
    row = column = rows = columns = 0
    for tag in tags:
        reference = _REFERENCE.search(tag[2])
        if tag[1] == b"row":
            row = int(reference[2] or 0) if reference else row + 1
            column = 0
        else:
            column = _column(reference[1]) if reference and reference[1] else column + 1
            row = int(reference[2]) if reference and reference[2] else row
            rows, columns = max(rows, row), max(columns, column)
    return rows * columns


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _ods_cells(tags: Iterator[re.Match[bytes]]) -> int:
    """The largest of the tables: rows times columns up to the last cell with a text or value, repeats counted."""
    most = row = column = rows = columns = last = repeat = 0
    for closing, name, attributes in (tag.groups() for tag in tags):
        repeats = _REPEATED.search(attributes)
        times = int(repeats[1]) if repeats else 1
        if name == b"table":
            row = rows = columns = 0
        elif name == b"table-row" and not closing:
            column = last = 0
            repeat = times
            row += repeat
        elif name in (b"table-cell", b"covered-table-cell") and not closing:
            column += times
            last = column if b"value-type" in attributes else last
        elif name == b"p" and not closing:
            last = column
        if last:
            rows, columns = max(rows, row), max(columns, last)
            most = max(most, rows * columns)
    return most
