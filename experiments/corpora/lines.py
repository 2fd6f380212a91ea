"""Lines, columns and JSON of corpus files, plain or gzip, read with errors that name file and line, and written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from matchloom.basics.files import UTF8_BOM, max_line, open_bytes, read_lines, refuse_utf16, write_lines
from matchloom.types import MatchloomError

Record = TypeVar("Record")
_BYTE = re.compile(r"\(byte (\d+)\)$")  # where msgspec stopped in a document


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
        except (msgspec.DecodeError, RecursionError) as error:  # the second of brackets within brackets
            raise MatchloomError(f"{path}, line {number}: {error}") from None


def zero_or_one(value: str, path: Path | str, number: int) -> float:
    """A label that must be 0 or 1."""
    if value not in ("0", "1"):
        raise MatchloomError(f"{path}, line {number}: expected a label of 0 or 1, found {value[:40]!r}")
    return float(value)


def document(path: Path | str, kind: type[Record]) -> Record:
    """The one JSON value of a file that is read whole, checked against `kind`.

    The file may have as many bytes as a hundred lines (see files.max_line).
    """
    limit = 100 * max_line()
    with open_bytes(path) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise MatchloomError(f"{path}: more than {limit:,} bytes (if it is whole, set MATCHLOOM_MAX_LINE to more)")
    refuse_utf16(path, content[:2])
    content = content.removeprefix(UTF8_BOM)
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        found = _BYTE.search(str(error))
        at = int(found[1]) if found else error.start if isinstance(error, UnicodeDecodeError) else len(content)
        # A value of another kind is told with its own place in the document.
        line = "" if isinstance(error, msgspec.ValidationError) else f", line {content.count(10, 0, at) + 1}"
        raise MatchloomError(f"{path}{line}: {error}") from None


def spaced(text: str) -> str:
    """The text on one line, with single spaces: what a column separated by tabs can hold."""
    return " ".join(text.split())


def write_table(path: Path, lines: Iterable[Sequence[str]]) -> int:
    """Write rows separated by tabs (texts that have passed `spaced`), gzip by name; how many there were."""
    return _write(path, ("\t".join(fields).encode() + b"\n" for fields in lines))


def write_records(path: Path, found: Iterable[object]) -> int:
    """Write one JSON object a line, gzip by name; how many there were."""
    return _write(path, (msgspec.json.encode(record) + b"\n" for record in found))


def _write(path: Path, lines: Iterable[bytes]) -> int:
    count = 0

    def counted() -> Iterator[bytes]:
        nonlocal count
        for line in lines:
            count += 1
            yield line

    write_lines(path, counted())
    return count
