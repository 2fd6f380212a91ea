"""What readers of every format yield: rows, what they left out, and what a user should know of the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from matchloom.types import MatchloomError


class OwnColumns(NamedTuple):
    """A row as its file has it: the user's names and values, in their order, those that we do not know included."""

    names: Sequence[str] = ()
    values: Collection[Any] = ()


class Row(NamedTuple):
    """A row of a file: where it stands ("line 3"), its values by our names, and all of it by the user's.

    `known` has the index of each of our columns among the user's.
    """

    place: str
    values: Mapping[str, Any]
    own: OwnColumns = OwnColumns()
    known: Mapping[str, int] = MappingProxyType({})


class LeftOut(NamedTuple):
    """What a reader left out, where it stands, and why. With an `error`, it is refused unless somebody collects."""

    place: str
    reason: str
    error: MatchloomError | None = None


class Note(NamedTuple):
    """What a reader assumed, such as that there is no header."""

    text: str


Found = Row | LeftOut | Note
Reader = Callable[..., Iterator[Found]]


def bad_row(path: Path, place: str, reason: str) -> LeftOut:
    """A row that cannot be read: an error, unless somebody collects what is left out."""
    return LeftOut(place, reason, MatchloomError(f"{path}, {place}: {reason}", code="bad_row"))
