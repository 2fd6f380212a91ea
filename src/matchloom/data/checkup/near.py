"""Texts that are nearly the same: pairs whose sets of letter triples overlap, found without comparing all with all.

A set's rarest triples come first. Two sets with a Jaccard similarity of t or more share one of the first
n - ceil(t n) + 1 of each (prefix filtering), so that only texts which share a rare triple are compared. Of a long text
the 128 triples with the least hashes stand for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import regex
from numpy.typing import NDArray

_SKETCH = 128
_COMMON = 1_000  # a triple that is among the first of more texts tells nothing
_BLOCK = 250  # texts that are compared with all at a time
_VERIFIED = 50_000  # pairs that are verified at a time
_NO_LETTER = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
_DIGITS = regex.compile(r"\p{N}+")

Ints = NDArray[np.int64]


class Near(NamedTuple):
    """Two texts by their indices, the first before the second, and how similar they are."""

    first: int
    second: int
    similarity: float


def near_pairs(texts: Sequence[str], threshold: float = 0.8) -> list[Near]:
    """The pairs of texts with a Jaccard similarity of at least `threshold`, the most similar first.

    Texts with other numbers in them ("version 7", "version 8") are not near each other.

    >>> near_pairs(["How do I pay by card?", "how do I pay by cards", "Where are you?"])[0][:2]
    (0, 1)
    """
    from scipy.sparse import csr_array

    plain = [f" {' '.join(_NO_LETTER.split(text.casefold())).strip()} " for text in texts]
    sets = [_sketch(text) for text in plain]
    lengths = np.array([len(one) for one in sets], dtype=np.int64)
    if lengths.sum() == 0:
        return []
    features = np.unique(np.concatenate(sets), return_inverse=True)[1].astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    shape = (len(sets), int(features.max()) + 1)
    full = csr_array((np.ones(len(features), dtype=np.float32), features, starts), shape=shape)
    numbers = [tuple(sorted(_DIGITS.findall(text))) for text in plain]
    found = []
    for first, second in _candidates(_Prefixes.of(full, threshold), lengths, threshold):
        shared = np.asarray(full[first].multiply(full[second]).sum(axis=1)).ravel()
        similarity = shared / (lengths[first] + lengths[second] - shared)
        for i in np.flatnonzero(similarity >= threshold).tolist():
            if numbers[first[i]] == numbers[second[i]]:
                found.append(Near(int(first[i]), int(second[i]), float(similarity[i])))
    return sorted(found, key=lambda near: (-near.similarity, near.first, near.second))


def _sketch(text: str) -> Ints:
    """The letter triples of a text by their hashes; of many the least. None for a text without words."""
    if not text.strip():
        return np.empty(0, dtype=np.int64)
    triples = {text[i : i + 3] for i in range(max(1, len(text) - 2))}
    return np.array(sorted(crc32(one.encode("utf-8", "surrogatepass")) for one in triples)[:_SKETCH], dtype=np.int64)


class _Prefixes(NamedTuple):
    """The rarest features of each text (texts, features); how many these are, and how many more are left out."""

    shared: Any
    lengths: Ints
    common: Ints

    @classmethod
    def of(cls, full: Any, threshold: float) -> _Prefixes:
        """As many of the rarest features as two texts that are near must share one of."""
        from scipy.sparse import csr_array

        frequency = np.bincount(full.indices, minlength=full.shape[1])
        lengths = np.zeros(full.shape[0], dtype=np.int64)
        columns = []
        for row in range(full.shape[0]):
            own = full.indices[full.indptr[row] : full.indptr[row + 1]]
            lengths[row] = len(own) - math.ceil(threshold * len(own)) + 1 if len(own) else 0
            columns.append(own[np.lexsort((own, frequency[own]))][: lengths[row]])
        features = np.concatenate(columns)
        rows = np.repeat(np.arange(full.shape[0]), lengths)
        among = np.bincount(features, minlength=full.shape[1])[features]
        common = np.bincount(rows[among > _COMMON], minlength=full.shape[0])
        kept = (among > 1) & (among <= _COMMON)
        ones = np.ones(int(kept.sum()), dtype=np.float32)
        return cls(csr_array((ones, (rows[kept], features[kept])), shape=full.shape), lengths, common)


def _candidates(prefixes: _Prefixes, lengths: Ints, threshold: float) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of texts that could be near, the lower index first, some at a time.

    Rarity orders features, so that the prefix which ends first has all that it shares with the other text in the
    other's prefix. Of the rest everything may be shared; if that is not enough, the pair cannot be near.
    """
    turned = prefixes.shared.T.tocsr()
    behind = lengths - prefixes.lengths
    for start in range(0, len(lengths), _BLOCK):
        found = (prefixes.shared[start : start + _BLOCK] @ turned).tocoo()
        first, second = found.row.astype(np.int64) + start, found.col.astype(np.int64)
        most = found.data + np.minimum(prefixes.common[first], prefixes.common[second])
        most += np.maximum(behind[first], behind[second])
        shorter, longer = np.minimum(lengths[first], lengths[second]), np.maximum(lengths[first], lengths[second])
        needed = threshold / (1 + threshold) * (shorter + longer) - 1e-6
        possible = (first < second) & (shorter >= threshold * longer) & (most >= needed)
        first, second = first[possible], second[possible]
        for at in range(0, len(first), _VERIFIED):
            yield first[at : at + _VERIFIED], second[at : at + _VERIFIED]
