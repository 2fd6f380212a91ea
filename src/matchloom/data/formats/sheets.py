"""Rows of .xlsx and .ods files, read by python-calamine, which is imported when such a file is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from matchloom.basics.files import open_raw
from matchloom.data.formats.columns import Columns, find_columns
from matchloom.data.formats.row import Found, LeftOut, Note
from matchloom.data.formats.sheet_size import check_sheets
from matchloom.data.formats.tables import Table, is_header
from matchloom.data.formats.values import as_text
from matchloom.types import MatchloomError

_TOP = 15  # rows in which a header may stand, below a title

Cells = list[str]


def sheet_rows(path: Path, given: Columns | None) -> Iterator[Found]:
    """The rows of every sheet that has questions and answers; of the other sheets, why they are left out."""
    check_sheets(path)
    book = _open(path)
    refused: list[MatchloomError] = []
    for name in book.sheet_names:
        try:
            yield from _of_sheet(path, name, _cells(path, book, name), given, alone=len(book.sheet_names) == 1)
        except MatchloomError as error:
            if error.code not in ("bad_columns", "no_data"):
                raise
            refused.append(error)
            yield LeftOut(f"sheet {name!r}", _reason(path, error))
    if len(refused) == len(book.sheet_names) and refused:
        raise refused[0]


def _open(path: Path) -> Any:
    import python_calamine

    with open_raw(path) as file:
        return _guarded(path, lambda: python_calamine.load_workbook(file))


def _cells(path: Path, book: Any, name: str) -> list[Cells]:
    """All cells of a sheet as texts, rows from the first on; what cells are merged share their value."""
    sheet = _guarded(path, lambda: book.get_sheet_by_name(name))
    rows = _guarded(path, lambda: sheet.to_python(skip_empty_area=False))
    cells = [[as_text(value) for value in row] for row in rows]
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        for row in cells[top : bottom + 1]:
            row[left : right + 1] = [cells[top][left]] * len(row[left : right + 1])
    return cells


def _guarded(path: Path, call: Any) -> Any:
    """What the reader gives; its errors and panics, which are no Exceptions, in one line."""
    try:
        return call()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        reason = " ".join(str(error).split())[:200]
        raise MatchloomError(f"{path} cannot be read as a sheet: {reason}; is it damaged?", code="damaged") from None


def _of_sheet(path: Path, name: str, cells: list[Cells], given: Columns | None, *, alone: bool) -> Iterator[Found]:
    used = [i for i in range(max(map(len, cells), default=0)) if any(i < len(row) and row[i] for row in cells)]
    rows = [(number, [row[i] for i in used]) for number, row in enumerate(cells, start=1) if any(row)]
    if not rows:
        raise MatchloomError(f"{path}, sheet {name!r} is empty", code="no_data")
    start = _header(rows, given)
    if start is None and not alone:
        raise MatchloomError(f"{path}, sheet {name!r}: no row names a question and an answer", code="bad_columns")
    table = Table(path, given, f", sheet {name!r}")
    for number, row in rows[: start or 0]:
        yield LeftOut(f"sheet {name!r}, row {number}", f"it stands above the header: {' '.join(row)[:40].strip()!r}")
    for number, row in rows[start or 0 :]:
        for found in table.rows(f"sheet {name!r}, row {number}", row, "a sheet has as many columns in each row"):
            yield Note(f"sheet {name!r}: {found.text}") if isinstance(found, Note) else found


def _header(rows: Sequence[tuple[int, Cells]], given: Columns | None) -> int | None:
    """Which of the first rows names both texts; None where none does."""
    for index, (_, row) in enumerate(islice(rows, _TOP)):
        if not is_header(row, given):
            continue
        try:
            find_columns("", row, given)
        except MatchloomError:
            continue
        return index
    return None


def _reason(path: Path, error: MatchloomError) -> str:
    return str(error).removeprefix(f"{path}, ").partition("; if they have other names")[0]
