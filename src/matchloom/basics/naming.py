"""Names from files, in messages: a few of them, each short and on one line."""

from __future__ import annotations

from collections.abc import Sequence

_MOST, _LONGEST = 12, 30


def on_one_line(name: str) -> str:
    """A name without line ends or repeated spaces."""
    return " ".join(name.split())


def listed(names: Sequence[str], join: str = ", ") -> str:
    """The first names.

    >>> listed(["a\\nb", *map(str, range(20))])
    'a b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...'
    """
    return join.join(on_one_line(name)[:_LONGEST] for name in names[:_MOST]) + (", ..." if len(names) > _MOST else "")
