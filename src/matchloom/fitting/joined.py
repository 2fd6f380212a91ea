"""What belongs together when pairs are split: pairs that share a text, an id or a wording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from matchloom.data.ids import digest, fold
from matchloom.types import Pair

LARGEST = 0.1  # of the pairs may hang together; more would leave no room for three parts


def joined(keys: Iterable[Sequence[Hashable]]) -> list[int]:
    """The number of each row's component; rows with a key in common, directly or by way of others, are of one.

    >>> joined([("a", "b"), ("c",), ("b", "d")])
    [0, 1, 0]
    """
    leader: list[int] = []
    first: dict[Hashable, int] = {}

    def find(row: int) -> int:
        while leader[row] != row:
            leader[row] = leader[leader[row]]
            row = leader[row]
        return row

    for row, own in enumerate(keys):
        leader.append(row)
        for key in own:
            one, other = find(first.setdefault(key, row)), find(row)
            leader[max(one, other)] = min(one, other)
    return [find(row) for row in range(len(leader))]


def group_queries(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with a group each: those of one query, by its id or its wording, and of one group already given."""
    keys = ([("query", fold(p.query)), ("id", p.query_id), *([("group", p.group)] if p.group else [])] for p in pairs)
    return _grouped(pairs, joined(keys))


def group_texts(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with a group each: those that share a text, on whichever side.

    Where a tenth of all pairs or more would hang together, those of one query; and where even these are so many, those
    of the same two texts only.
    """
    given = [[("group", p.group)] if p.group else [] for p in pairs]
    sides = [(fold(p.query), fold(p.text)) for p in pairs]
    levels = (
        [[*own, ("text", query), ("text", text)] for own, (query, text) in zip(given, sides, strict=True)],
        [[*own, ("text", query)] for own, (query, _) in zip(given, sides, strict=True)],
        [[("both", *sorted(side))] for side in sides],
    )
    found: list[int] = []
    for keys in levels:
        found = joined(keys)
        if max(Counter(found).values(), default=0) <= max(2, LARGEST * len(pairs)):
            break
    return _grouped(pairs, found)


def _grouped(pairs: Sequence[Pair], components: Sequence[int]) -> list[Pair]:
    """Groups are named after their content, so that a split does not depend on the order of the pairs."""
    members: dict[int, list[str]] = {}
    for component, pair in zip(components, pairs, strict=True):
        members.setdefault(component, []).append(digest(fold(pair.query), fold(pair.text)))
    names = {component: digest(*sorted(set(own))) for component, own in members.items()}
    return [pair._replace(group=names[component]) for component, pair in zip(components, pairs, strict=True)]
