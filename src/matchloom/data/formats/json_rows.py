"""Rows of JSON files: an object a line, or one document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from matchloom.basics.files import read_lines
from matchloom.data.formats.columns import Columns
from matchloom.data.formats.json_list import is_lines, json_objects
from matchloom.data.formats.records import NamedRows, columns_as_rows
from matchloom.data.formats.row import Found, bad_row
from matchloom.data.formats.values import short


def jsonl_rows(path: Path, given: Columns | None) -> Iterator[Found]:
    """The rows of a file with an object on each line."""
    named = NamedRows(str(path), given)
    for number, line in read_lines(path):
        place = f"line {number}"
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line)
        except (ValueError, RecursionError) as error:
            remedy = "" if line.endswith("\n") else "; is the file cut off?"
            yield bad_row(path, place, f"this is no JSON ({error}){remedy}")
            continue
        if isinstance(row, Mapping):
            yield from named.rows(place, row)
        else:
            yield bad_row(path, place, f"expected a JSON object, found {line.strip()[:40]!r}")


def json_rows(path: Path, given: Columns | None) -> Iterator[Found]:
    """The rows of a JSON document, or of lines where the file has these."""
    if is_lines(path):
        yield from jsonl_rows(path, given)
        return
    named = NamedRows(str(path), given)
    for number, row in json_objects(path):
        place = f"object {number or 1}"
        if isinstance(row, Mapping) and not number:
            for index, one in enumerate(columns_as_rows(row), start=1):
                yield from named.rows(f"object {index}", one)
        elif isinstance(row, Mapping):
            yield from named.rows(place, row)
        else:
            yield bad_row(path, place, f"expected a JSON object, found {short(row)}")
