"""How tests of formats read a file: its pairs, what was left out, and what was assumed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from matchloom.data.formats.pairs import read_rows
from matchloom.data.formats.row import LeftOut
from matchloom.data.formats.values import own_columns

FILES = Path(__file__).parent / "files"  # which LibreOffice 7.4 and openpyxl 3.1 wrote


class Read(NamedTuple):
    """What a reader gave."""

    pairs: list[tuple[str, str]]
    places: list[str]
    own: list[dict[str, str]]
    ids: list[str]
    left_out: list[LeftOut]
    notes: list[str]


def read(path: Path, content: str | bytes | None = None) -> Read:
    """Read a file, which is written first if its content is given."""
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    left_out: list[LeftOut] = []
    notes: list[str] = []
    rows = list(read_rows(path, whole=True, on_left_out=left_out.append, on_note=notes.append))
    return Read(
        [(pair.query, pair.text) for pair, _ in rows],
        [row.place for _, row in rows],
        [own_columns(row) for _, row in rows],
        [pair.text_id for pair, _ in rows],
        left_out,
        notes,
    )
