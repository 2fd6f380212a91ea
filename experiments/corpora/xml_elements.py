"""Elements of a large XML file one by one, from an untrusted file: no document type, no entities, bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from experiments.corpora.lines import spaced
from matchloom.basics.files import max_line, open_bytes, refuse_utf16
from matchloom.types import MatchloomError

_CHUNK = 1 << 16
_ENCODINGS = ("utf-8", "utf8", "us-ascii", "ascii")


def elements(paths: Sequence[Path], tag: str) -> Iterator[tuple[str, Element]]:
    """Each <tag> element of an XML file with where it starts ("FILE, line 7"); what is outside of them is passed over.

    Several paths are the parts of one file that was cut anywhere, plain or gzip. A document type is refused, and with
    it every entity but XML's own five: none can grow without end or name another file. An element of more characters
    than a line may have bytes (see files.max_line) is refused before it is read to its end.
    """
    reader = _Reader(tag)
    found = False
    for path in paths:
        reader.begin(path)
        with open_bytes(path) as stream:
            start = stream.peek(2)[:2]
            refuse_utf16(path, start)
            while chunk := stream.read(_CHUNK):
                for one in reader.feed(chunk):
                    found = True
                    yield one
    for one in reader.feed(b"", last=True):
        found = True
        yield one
    if not found:
        raise MatchloomError(f"{paths[0]}: no <{tag}> in it; expected XML with one <{tag}> for each entry")


def inner_text(element: Element, name: str) -> str:
    """The text of the first child of this name with single spaces; empty where there is none."""
    child = element.find(name)
    return "" if child is None else spaced("".join(child.itertext()))


class _Reader:
    """expat's events into elements: a builder is there while one is open, and holds nothing else."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._limit = max_line()
        self._builder: TreeBuilder | None = None
        self._depth = self._size = self._silent = 0
        self._where = ""
        self._done: list[tuple[str, Element]] = []
        self._path = Path()
        self._lines_before = 0
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.XmlDeclHandler = self._check_encoding
        self._parser.StartDoctypeDeclHandler = self._refuse_type
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def begin(self, path: Path) -> None:
        """What follows is from this file."""
        self._path, self._lines_before = path, self._parser.CurrentLineNumber - 1

    def feed(self, chunk: bytes, *, last: bool = False) -> list[tuple[str, Element]]:
        """The elements that end in this chunk."""
        self._done = []
        self._silent += len(chunk)
        if self._silent > self._limit + _CHUNK:  # expat keeps a tag or comment until it ends
            raise MatchloomError(f"{self._line()}: a tag or comment of more than {self._limit:,} bytes; is it XML?")
        try:
            self._parser.Parse(chunk, last)
        except expat.ExpatError as error:
            told = expat.ErrorString(error.code)
            raise MatchloomError(f"{self._line()}: no whole XML here ({told}); fetch the file again") from None
        return self._done

    def _line(self) -> str:
        return f"{self._path}, line {self._parser.CurrentLineNumber - self._lines_before}"

    def _check_encoding(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            raise MatchloomError(
                f"{self._line()}: encoding {encoding[:40]!r}; convert the file to UTF-8, and say so there"
            )

    def _refuse_type(self, *_: object) -> None:
        raise MatchloomError(f"{self._line()}: a document type (<!DOCTYPE ...>) is not read; remove it")

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise MatchloomError(
                f"{self._line()}: a <{self._tag}> of more than {self._limit:,} characters; is it ever closed? "
                "(if it is whole, set MATCHLOOM_MAX_LINE to more)"
            )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._silent = 0
        if self._builder is None:
            if name != self._tag:
                return
            self._builder, self._depth, self._size, self._where = TreeBuilder(), 0, 0, self._line()
        self._depth += 1
        self._grow(len(name) + sum(len(key) + len(value) for key, value in attributes.items()))
        self._builder.start(name, attributes)

    def _end(self, name: str) -> None:
        self._silent = 0
        if self._builder is None:
            return
        self._builder.end(name)
        self._depth -= 1
        if not self._depth:
            self._done.append((self._where, self._builder.close()))
            self._builder = None

    def _text(self, text: str) -> None:
        self._silent = 0
        if self._builder is not None:
            self._grow(len(text))
            self._builder.data(text)
