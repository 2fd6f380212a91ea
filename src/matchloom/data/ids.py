"""What counts as the same text, and ids made from content, so that nothing depends on the order of lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from matchloom.types import Pair


def digest(*parts: str) -> str:
    """Sixteen hexadecimal digits that stand for these texts: the same on every machine and in every run.

    >>> digest("what is a loom?")
    '95d61a04ff053d4c'
    """
    # A file may hold half of a surrogate pair; an id must not fail on it.
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def fold(text: str) -> str:
    """The text without case and with single spaces: two texts that fold alike are one."""
    return " ".join(text.casefold().split())


def with_ids(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Fill the ids that are empty and leave the others; pairs come out one by one as they come in.

    A query's id is a digest of its text. A candidate's id is a digest of all that its pair says and of how often
    that same pair came before, so that a text listed twice gets two ids. A digest has no order of its own: ties that
    are broken by id follow neither the lines of the file nor the labels.
    """
    seen: Counter[str] = Counter()
    for pair in pairs:
        query_id = pair.query_id or digest(pair.query)
        text_id = pair.text_id
        if not text_id:
            label = "" if pair.label is None else str(float(pair.label))
            text_id = digest(query_id, pair.query, pair.text, label, pair.group)
            seen[text_id] += 1
            if seen[text_id] > 1:
                text_id = digest(text_id, str(seen[text_id]))
        yield pair._replace(query_id=query_id, text_id=text_id)


def both_sides(pairs: Iterable[Pair]) -> list[str]:
    """The different texts of both sides of pairs, in their order."""
    return list(dict.fromkeys(side for pair in pairs for side in (pair.query, pair.text)))
