"""Pairs whose texts occur once, so that no text can stand on both sides of a split."""

from __future__ import annotations

from collections.abc import Iterable

from matchloom.data.identity import normalize_text
from matchloom.types import Pair


def once_each(pairs: Iterable[Pair]) -> list[Pair]:
    """Keep a pair only if neither of its texts (case and spacing apart) stands in a pair kept before, on either side.

    The pairs are taken in alphabetical order, so that the same ones are kept however the lines of a file are
    shuffled; that is also the order of the result. Of pairs that are the same, the first one given is kept.
    """
    seen: set[str] = set()
    kept = []
    keyed = [(normalize_text(pair.query), normalize_text(pair.text), pair) for pair in pairs]
    for query, text, pair in sorted(keyed, key=lambda key: key[:2]):
        if query != text and query not in seen and text not in seen:
            seen.update((query, text))
            kept.append(pair)
    return kept
