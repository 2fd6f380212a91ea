"""The objects of a JSON file, one in memory at a time: of a list, or of {"data": [...]} and the like."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

import msgspec

from matchloom.basics.files import UTF8_BOM, max_line, open_utf8
from matchloom.types import MatchloomError

_CHUNK = 1 << 16
_DECODE = json.JSONDecoder().raw_decode
_SPACE = re.compile(r"[ \t\n\r]*")
_EXPECTED = 'expected a list of objects, or {"data": [...]}'
# Under these names an object holds a list of rows, which is read item by item; help desks say articles.
_LISTS = frozenset(
    ("data", "articles", "solution_articles", "results", "items", "entries", "records", "rows", "faqs", "faq")
)


def is_lines(path: Path) -> bool:
    """Whether a .json file has an object on each line, as many tools write it."""
    with open_utf8(path) as stream:
        found: list[bytes] = []
        while len(found) < 2 and (line := stream.readline(max_line())):
            found += [line.removeprefix(UTF8_BOM).strip()] if line.strip() else []
    first = found[0] if len(found) == 2 else b""  # a single line is a document like any other
    if not first.startswith(b"{") or not first.endswith(b"}"):
        return False
    try:
        row = msgspec.json.decode(first)
    except (ValueError, RecursionError):
        return False
    return not any(isinstance(row.get(name), list) for name in _LISTS)


def json_objects(path: Path) -> Iterator[tuple[int, object]]:
    """Number and value of each item of the list, from 1; of an object without one, 0 and the object."""
    with open_utf8(path) as stream:
        document = _Document(path, stream)
        if document.peek() == "{":
            yield from document.data()
        elif document.peek() == "[":
            yield from document.items()
        elif document.peek():
            raise MatchloomError(f"{path}: {_EXPECTED}, found {document.peek()!r}", code="wrong_format")
        if document.peek():
            raise MatchloomError(
                f"{path}: {_EXPECTED} and nothing after it, found {document.peek()!r}", code="wrong_format"
            )


class _Document:
    """A JSON text of which a little is in memory, and a place in it."""

    def __init__(self, path: Path, stream: BufferedReader) -> None:
        self.path = path
        self.number = 0  # of the item we are at
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._limit = max_line()
        self._text = ""
        self._at = 0
        start = stream.peek(3)[:3]
        if start == UTF8_BOM:
            stream.read(3)

    def items(self) -> Iterator[tuple[int, object]]:
        self._take()
        if self.peek() == "]":
            self._take()
            return
        while True:
            self.number += 1
            yield self.number, self._value()
            if (found := self._take()) == "]":
                return
            if found != ",":
                raise self._no_json(f"expected a comma or ], found {found!r}" if found else "the end is missing")

    def data(self) -> Iterator[tuple[int, object]]:
        """The items of lists that are known by name, beside which all is passed over; else the object itself."""
        others: dict[str, object] = {}
        listed = False
        found = self._take() and ("," if self.peek() != "}" else self._take())
        while found == ",":
            key = self._value()
            if not isinstance(key, str) or self._take() != ":":
                raise self._no_json("expected a key and a colon")
            if key in _LISTS and self.peek() == "[":
                others, listed = {}, True
                yield from self.items()
            elif listed:
                self._value()
            else:
                others[key] = self._value()
            found = self._take()
        if found != "}":
            raise self._no_json(f"expected a comma or }}, found {found!r}" if found else "the end is missing")
        if not listed and not others:
            raise MatchloomError(f"{self.path}: {_EXPECTED}, found {{}}", code="wrong_format")
        if not listed:
            yield 0, others

    def peek(self) -> str:
        """The next character that is no space; nothing at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or not self._read():
                return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        found = self.peek()
        self._at += len(found)
        return found

    def _value(self) -> object:
        self.peek()
        while True:
            try:
                value, end = _DECODE(self._text, self._at)
            except json.JSONDecodeError as error:
                # An error far from the end of what was read stays one, whatever comes.
                cut = error.msg.startswith("Unterminated string") or error.pos > len(self._text) - 16
                if cut and self._read():
                    continue
                raise self._no_json(f"{error.msg}{', is the file cut off?' if cut else ''}") from None
            except (RecursionError, ValueError) as error:
                raise self._no_json(str(error)) from None
            if end == len(self._text) and self._read():  # of a number there may be more
                continue
            if "\\u" in self._text[self._at : end] and _holds_half(value):
                raise self._no_json("an escape is half a character, which nothing can write")
            self._at = end
            return value

    def _read(self) -> bool:
        """Read on, twice as much as is left, so that a long value is not tried too often."""
        self._text, self._at = self._text[self._at :], 0
        if len(self._text) > self._limit:
            raise MatchloomError(
                f"{self.path}, object {self.number}: longer than {self._limit:,} characters; "
                "if it is meant to be, set MATCHLOOM_MAX_LINE to more",
                code="too_large",
            )
        raw = self._stream.read(max(_CHUNK, len(self._text)))
        try:
            self._text += self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            raise self._no_json(f"byte 0x{error.object[error.start]:02x} is not UTF-8") from None
        return bool(raw)

    def _no_json(self, reason: str) -> MatchloomError:
        return MatchloomError(f"{self.path}, object {max(self.number, 1)}: this is no JSON ({reason})", code="bad_row")


def _holds_half(value: object) -> bool:
    """Whether a text in it is half a surrogate pair: lines of JSON refuse them too."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
