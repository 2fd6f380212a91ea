"""The citation networks of AMiner (DBLP, ACM; Tang et al., KDD 2008): papers with abstracts and whom they cite.

Versions up to 9 are text, a line a field and a blank line between papers: `#*` title, `#index` id, `#%` an id that is
cited, `#!` abstract, and others. Versions from 10 are JSON, an object a line; version 12 is one array of them, a line
each, and gives an abstract as the places of each word.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from experiments.corpora.lines import numbered_lines, spaced
from matchloom.types import MatchloomError

_FIELDS = {"#*": "title", "#index": "id", "#%": "references", "#!": "abstract"}
_MAX_WORDS = 100_000  # an abstract's places are numbers that anyone can write


class Cited(msgspec.Struct):
    """A paper and the ids of those that it cites; texts may be empty."""

    id: str
    title: str
    abstract: str
    references: list[str]


def dblp_papers(path: Path) -> Iterator[Cited]:
    """The papers of one file, plain or gzip, text or JSON."""
    first = next((line.strip() for _, line in numbered_lines(path) if line.strip()), "")
    if first.startswith(("{", "[")):
        return _read_json(path)
    if first.startswith("#") or first.isdigit():  # version 5 starts with a number
        return _read_text(path)
    raise MatchloomError(f"{path}: neither lines that start with #* or #index nor JSON; expected a file of AMiner")


def _read_text(path: Path) -> Iterator[Cited]:
    fields: list[tuple[str, str]] = []
    start = 0
    for number, line in numbered_lines(path):
        if not line.strip():
            if fields:
                yield _paper(fields, f"{path}, line {start}")
            fields = []
        elif line.startswith("#"):
            start = start if fields else number
            fields.append(_field(line))
        elif fields:  # a text that goes on
            fields[-1] = fields[-1][0], f"{fields[-1][1]} {line}"
        elif number > 1 or not line.strip().isdigit():
            raise MatchloomError(f"{path}, line {number}: expected #* or #index at the start, found {line[:40]!r}")
    if fields:
        yield _paper(fields, f"{path}, line {start}")


def _field(line: str) -> tuple[str, str]:
    for mark, name in _FIELDS.items():
        if line.startswith(mark):
            return name, line[len(mark) :]
    return "", ""  # authors, venue, year


def _paper(fields: list[tuple[str, str]], where: str) -> Cited:
    told = {name: spaced(text) for name, text in fields}
    if not told.get("id"):
        raise MatchloomError(f"{where}: a paper without #index")
    cited = [spaced(text) for name, text in fields if name == "references" and text.strip()]
    return Cited(told["id"], told.get("title", ""), told.get("abstract", ""), cited)


class _Indexed(msgspec.Struct):
    length: int = msgspec.field(name="IndexLength")
    places: dict[str, list[int]] = msgspec.field(name="InvertedIndex")


class _Object(msgspec.Struct):
    id: str | int
    title: str = ""
    abstract: str = ""
    references: list[str | int] = []
    indexed_abstract: _Indexed | str | None = None


def _read_json(path: Path) -> Iterator[Cited]:
    decoder = msgspec.json.Decoder(_Object)
    for number, line in numbered_lines(path):
        inner = line.strip().strip(",")
        if inner in ("", "[", "]"):
            continue
        where = f"{path}, line {number}"
        try:
            found = decoder.decode(inner)
            abstract = found.abstract or _in_order(found.indexed_abstract, where)
        except (msgspec.DecodeError, RecursionError) as error:
            raise MatchloomError(f"{where}: {error}") from None
        cited = [spaced(str(one)) for one in found.references]
        yield Cited(spaced(str(found.id)), spaced(found.title), spaced(abstract), cited)


def _in_order(indexed: _Indexed | str | None, where: str) -> str:
    """An abstract from the places of its words; version 11 has these as JSON within a string."""
    if isinstance(indexed, str):
        indexed = msgspec.json.decode(indexed, type=_Indexed) if indexed else None
    if indexed is None:
        return ""
    at = {place: word for word, places in indexed.places.items() for place in places}
    if at and not 0 <= min(at) <= max(at) < _MAX_WORDS:
        raise MatchloomError(f"{where}: an abstract with a word at place {max(at)}; expected 0 to {_MAX_WORDS - 1:,}")
    return " ".join(at[place] for place in sorted(at))
