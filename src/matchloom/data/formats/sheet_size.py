"""A sheet before its reader sees it: its XML is whole, and its cells are not too many.

The reader (calamine) makes room for every cell up to the last one, filled or not, and reads XML that is cut off without
end. So all of it is parsed here first, by expat, in a stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.parsers import expat

from matchloom.data.formats.bounded_zip import open_zip
from matchloom.types import MatchloomError

_CELLS = 20_000_000
_SPACES = 1_000_000
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,12}", re.ASCII)


def check_sheets(path: Path) -> None:
    """Refuse a file that unpacks to too much, is no XML inside, or whose sheets would take too many cells."""
    with open_zip(path, "sheet (.xlsx or .ods)") as archive:
        for member in archive.files():
            chunks = archive.chunks(member)
            if not member.filename.endswith((".xml", ".rels")):
                for _ in chunks:  # counts what it unpacks to
                    pass
                continue
            size = _Ods() if member.filename == "content.xml" else _Xlsx()
            _parse(path, member.filename, chunks, size)


class _Xlsx:
    """Rows times columns up to the last cell of an Excel sheet; none in any other XML."""

    def __init__(self) -> None:
        self.cells = self._row = self._column = self._rows = self._columns = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        tag = name.rpartition(":")[2]
        reference = attributes.get("r", "")
        if tag == "row":
            self._row = _whole(reference, self._row + 1)
            self._column = 0
        elif tag == "c":
            named = _REFERENCE.fullmatch(reference)
            if reference and named is None:  # the reader might take it for anything
                raise ValueError(f"the cell {reference[:20]!r} is none")
            self._column = _column(named[1]) if named else self._column + 1
            self._row = int(named[2]) if named else self._row
            self._rows, self._columns = max(self._rows, self._row), max(self._columns, self._column)
            self.cells = self._rows * self._columns


class _Ods:
    """Rows times columns of a table, up to the last cell with a text or value, repeats counted."""

    def __init__(self) -> None:
        self.cells = self.spaces = self._row = self._column = self._rows = self._columns = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        tag = name.rpartition(":")[2]
        own = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        filled = tag == "p"
        if tag == "table":
            self._row = self._rows = self._columns = 0
        elif tag == "table-row":
            self._row += _whole(own.get("number-rows-repeated", ""), 1)
            self._column = 0
        elif tag == "s":  # so many spaces, which the reader makes
            self.spaces += _whole(own.get("c", ""), 1)
            if self.spaces > _SPACES:
                raise ValueError(f"more than {_SPACES:,} spaces given by their count")
        elif tag in ("table-cell", "covered-table-cell"):
            self._column += _whole(own.get("number-columns-repeated", ""), 1)
            filled = "value-type" in own
        if filled:
            self._rows, self._columns = max(self._rows, self._row), max(self._columns, self._column)
            self.cells = max(self.cells, self._rows * self._columns)


def _parse(path: Path, member: str, chunks: Iterable[bytes], size: _Xlsx | _Ods) -> None:
    def start(name: str, attributes: dict[str, str]) -> None:
        size.start(name, attributes)
        if size.cells > _CELLS:
            raise MatchloomError(
                f"{path}: {member} spans {size.cells:,} cells; at most {_CELLS:,} are read: remove what stands far "
                "below or far to the right",
                code="too_large",
            )

    def refuse(*_: object) -> None:
        raise MatchloomError(f"{path}: {member} declares a document type, which no sheet does", code="damaged")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = refuse
    try:
        for chunk in chunks:
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        if isinstance(error, MatchloomError):
            raise
        raise MatchloomError(f"{path} is damaged: {member} is no sheet's XML ({error})", code="damaged") from None


def _whole(text: str, otherwise: int) -> int:
    if text and not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:20]!r} is no number")
    return int(text) if text else otherwise


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number
