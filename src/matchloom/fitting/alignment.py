"""How two texts align: what stands in the same order, how they begin and end, and which other words are spelt alike.

A text and its copy with one word more have nearly all words in a row in common; two texts that share as many words in
another order do not. Each feature is the same in either order of the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

ALIGNED = (
    "words in the same order",  # 2 * those in common blocks / words of both texts; of characters where asked
    "longest run of words",  # of the shorter text's
    "other words spelt alike",  # those of one text alone: bigrams of the nearest one of the other
    "other words spelt alike, of the other text",
    "same first word",
    "same first two words",
    "same last word",
    "same last two words",
)
_ALIGNED = 100  # words of a text that are aligned, and those of it alone that are compared: time is their product
_LONGEST = 40  # characters of a word
Floats = NDArray[np.float64]


def aligned(
    left: Sequence[str], right: Sequence[str], rarity: Callable[[str], float], *, characters: bool = False
) -> Floats:
    """The features of two texts, in the order of ALIGNED, from their stems. (F,)

    With `characters` these have an order, and not words: where they nearly are words.
    """
    ours, theirs = sorted(set(left) - set(right)), sorted(set(right) - set(left))
    begins = (float(bool(left and right) and left[:n] == right[:n]) for n in (1, 2))
    ends = (float(bool(left and right) and left[-n:] == right[-n:]) for n in (1, 2))
    units = ["".join(side) if characters else side for side in (left, right)]
    alike = sorted((_alike(ours, theirs, rarity), _alike(theirs, ours, rarity)))
    return np.array([*_in_order(*units), *alike, *begins, *ends])


def _in_order(one: Sequence[str], other: Sequence[str]) -> tuple[float, float]:
    """Which part of both is in common blocks, and which part of the shorter one is the longest block."""
    one, other = sorted(
        (list(one[:_ALIGNED]), list(other[:_ALIGNED]))
    )  # which blocks are found depends on which is first
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    sizes = [block.size for block in blocks]
    return 2 * sum(sizes) / max(1, len(one) + len(other)), max(sizes) / max(1, min(len(one), len(other)))


def _alike(words: Sequence[str], others: Sequence[str], rarity: Callable[[str], float]) -> float:
    """How alike the nearest of the others are to words, on the mean by rarity."""
    words, others = words[:_ALIGNED], others[:_ALIGNED]
    if not words or not others:
        return 0.0
    grams = [_bigrams(one) for one in others]
    weights = [rarity(word) + 1e-3 for word in words]
    nearest = [max(_jaccard(_bigrams(word), one) for one in grams) for word in words]
    return sum(w * n for w, n in zip(weights, nearest, strict=True)) / sum(weights)


@lru_cache(20_000)
def _bigrams(word: str) -> frozenset[str]:
    marked = f" {word[:_LONGEST]} "
    return frozenset(marked[i : i + 2] for i in range(len(marked) - 1))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    both = len(one & other)
    return both / (len(one) + len(other) - both)
