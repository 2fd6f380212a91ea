"""Which questions of a test set count: the rules behind "raw" and "clean", which lift or lower every figure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from matchloom.types import Pair


def answered(pairs: Sequence[Pair]) -> list[Pair]:
    """The lists with at least one positive candidate; without one a measure has nothing to find."""
    labels = _labels(pairs)
    return [pair for pair in pairs if True in labels[pair.query_id]]


def both_labels(pairs: Sequence[Pair]) -> list[Pair]:
    """The lists with a positive and a negative candidate; all others are ranked right, or wrong, by anybody."""
    labels = _labels(pairs)
    return [pair for pair in pairs if len(labels[pair.query_id]) == 2]


def _labels(pairs: Sequence[Pair]) -> dict[str, set[bool]]:
    labels: dict[str, set[bool]] = defaultdict(set)
    for pair in pairs:
        labels[pair.query_id].add(pair.is_labelled_positive)
    return labels
