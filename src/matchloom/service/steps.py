"""Work in steps: each takes a moment, and others get a turn between two of them (`turns`)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np

from matchloom.types import Pair, Scores

T = TypeVar("T")
Steps = Generator[None, None, T]

_PAIRS = 128  # in one call of a scorer
_CELLS = 8_000_000  # pairs of characters in one call: about 250,000 pairs of words
_CHARACTERS = 200_000  # in one call


def blocks_of(sizes: Sequence[tuple[int, int]]) -> Iterator[slice]:
    """Stretches of pairs, told by the lengths of their texts, that are scored in one step each."""
    start = cells = characters = 0
    for n, (left, right) in enumerate(sizes):
        if n > start and (
            n - start >= _PAIRS or cells + left * right > _CELLS or characters + left + right > _CHARACTERS
        ):
            yield slice(start, n)
            start, cells, characters = n, 0, 0
        cells += left * right
        characters += left + right
    if start < len(sizes):
        yield slice(start, len(sizes))


def sizes_of(pairs: Sequence[Pair]) -> list[tuple[int, int]]:
    """The lengths of the texts of pairs."""
    return [(len(pair.query), len(pair.text)) for pair in pairs]


def score_steps(score: Callable[[Sequence[Pair]], Scores], pairs: Sequence[Pair]) -> Steps[Scores]:
    """The score of each pair. It depends on its pair alone, a promise of every scorer: so the steps change nothing."""
    found = []
    for block in blocks_of(sizes_of(pairs)):
        found.append(score(pairs[block]))
        yield
    return np.concatenate(found) if found else np.zeros(0, np.float32)


def encoded(steps: Steps[Any]) -> Steps[bytes]:
    """The result as JSON, made where the work was done: a large one takes longer than the loop may wait."""
    found = yield from steps
    yield
    return msgspec.json.encode(found)
