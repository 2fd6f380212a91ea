"""A row of a file, whatever its format: what every reader yields."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple


class OwnColumns(NamedTuple):
    """A row as its file has it: the user's names and values, in their order, those that we do not know included."""

    names: Sequence[str] = ()
    values: Collection[Any] = ()


class Row(NamedTuple):
    """A row of a file: where it stands ("line 3"), its values by our names, and all of it by the user's.

    `known` are the indices of the user's columns that are ours under another name.
    """

    place: str
    values: dict[str, Any]
    own: OwnColumns = OwnColumns()
    known: Collection[int] = ()
