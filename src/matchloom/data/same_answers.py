"""Which pairs are of one answer: by the ids of their texts where these name answers, and by the texts themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import regex

from matchloom.data.ids import fold
from matchloom.types import Pair

_CONFLICTS, _COMPARED = 3, 20
_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{L}\p{M}\p{N}]+")


def same_answers(pairs: Sequence[Pair]) -> list[int]:
    """The answer of each pair, as a number: pairs that share a text_id, or a text but for case and spaces, have one."""
    above = list(range(len(pairs)))

    def top(n: int) -> int:
        while above[n] != n:
            above[n] = above[above[n]]
            n = above[n]
        return n

    first: dict[tuple[str, str], int] = {}
    for n, pair in enumerate(pairs):
        for key in (("text", fold(pair.text)), ("id", pair.text_id)):
            if key != ("id", ""):
                above[top(n)] = top(first.setdefault(key, n))
    return [top(n) for n in range(len(pairs))]


def answers_of(pairs: Sequence[Pair]) -> list[int]:
    """`same_answers`, by texts alone where text_ids name something else."""
    return same_answers([pair._replace(text_id="") for pair in pairs] if local_ids(pairs) else pairs)


def local_ids(pairs: Iterable[Pair]) -> list[str]:
    """The text_ids that speak against all of them as names of answers; none where they can be trusted.

    An id with several texts is one answer, written in several ways, as long as the texts share words. A text that
    shares less than a quarter of the words with its id's most frequent one is a conflict. An answer may have been
    written anew altogether; but where most ids with several texts have conflicts, and there are three or more, ids name
    something else.
    """
    texts: dict[str, Counter[str]] = {}
    for pair in pairs:
        if pair.text_id:
            texts.setdefault(pair.text_id, Counter())[fold(pair.text)] += 1
    several = {name: own for name, own in texts.items() if len(own) > 1}
    conflicts: dict[str, int] = {}
    for name, own in several.items():
        first, *others = sorted(own, key=lambda text: (-own[text], text))[:_COMPARED]
        words = _words(first)
        apart = sum(4 * len(words & other) < len(words | other) for other in map(_words, others))
        if apart:
            conflicts[name] = apart
    return sorted(conflicts) if 2 * len(conflicts) > len(several) and sum(conflicts.values()) >= _CONFLICTS else []


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))
