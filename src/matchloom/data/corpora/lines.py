"""Lines, columns and JSON records of a corpus file, plain or gzip, with errors that name file and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from matchloom.files import read_lines
from matchloom.types import MatchloomError

Record = TypeVar("Record")


def numbered_lines(path: Path | str) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers from 1, without their ends."""
    return ((number, line.rstrip("\r\n")) for number, line in read_lines(path))


def rows(path: Path | str, columns: Sequence[str], *, header: bool) -> Iterator[tuple[int, list[str]]]:
    """The tab-separated rows of a file, quotes taken as they are; each must have these columns.

    With `header`, the first line must name them. Blank lines are passed over.
    """
    number = 0
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        fields = line.split("\t")
        if header:
            if fields != list(columns):
                raise MatchloomError(f"{path}, line {number}: expected the header {list(columns)}, found {line[:80]!r}")
            header = False
            continue
        if len(fields) != len(columns):
            raise MatchloomError(
                f"{path}, line {number}: expected {len(columns)} columns separated by tabs ({', '.join(columns)}), "
                f"found {len(fields)}"
            )
        yield number, fields
    if not number:
        raise MatchloomError(f"{path}: empty file; expected lines of {', '.join(columns)}")


def records(path: Path | str, kind: type[Record]) -> Iterator[tuple[int, Record]]:
    """The JSON object of each line that is not blank, checked against the fields of `kind` (a msgspec.Struct)."""
    decoder = msgspec.json.Decoder(kind)
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line)
        except msgspec.DecodeError as error:
            raise MatchloomError(f"{path}, line {number}: {error}") from None


def zero_or_one(value: str, path: Path | str, number: int) -> float:
    """A label that must be 0 or 1."""
    if value not in ("0", "1"):
        raise MatchloomError(f"{path}, line {number}: expected a label of 0 or 1, found {value[:40]!r}")
    return float(value)
