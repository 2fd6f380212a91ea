"""The steps of a search between its words and its hits, each one call for all questions: by a kernel or by numpy.

Both give the same bits, for a question alone and among others. Sums of many numbers are eight sums side by side, added
up in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.kernels.native import address, library
from matchloom.lexical.columns import Floats, Ids, Rows, Sparse

TERM, TWO, NGRAM = 0, 1, 2  # kinds of features
LEAST = 1e-9  # a deviation that is less is rounding
_LANES = 8


class Read(NamedTuple):
    """Texts as their features: `vectors` of all, `terms` of those that are stems."""

    vectors: Sparse
    terms: Sparse


class Weighing:
    """Numbered features with an idf each, as `value = (1 + ln count) * idf`, two blocks scaled to a length each.

    N-grams are one block and all else is the other; the squared length of each is 1 / `factor`. With `single`, values
    are rounded to single precision.
    """

    def __init__(self, kinds: NDArray[np.uint8], idf: Floats, *, factor: float, single: bool) -> None:
        self.kinds, self.idf = np.ascontiguousarray(kinds), np.ascontiguousarray(idf)
        self._factor, self._single = factor, single
        self._at = (address(self.kinds), address(self.idf))

    def read(self, sizes: Sequence[int], ids: bytes) -> Read:
        """Texts of so many numbers each, all numbers in a row (int64)."""
        native = library()
        if native is None:
            return self._read(np.array(sizes, dtype=np.int64), np.frombuffer(ids, dtype=np.int64))
        count, total = len(sizes), len(ids) // 8
        # One block for all that comes and goes: a small array more costs as much as a step of the kernel.
        lengths = (count, total, count + 1, total, total, count + 1, total, total)
        starts = [0, *accumulate(lengths)]
        whole = np.empty(starts[-1], dtype=np.int64)
        whole[:count] = sizes
        whole[count : count + total] = np.frombuffer(ids, dtype=np.int64)
        first = address(whole)
        at = [first + 8 * start for start in starts]
        logs = _logs(total).ctypes.data
        native.read_texts(count, at[0], at[1], *self._at, logs, self._factor, self._single, *at[2:8])
        bounds, columns, values, own, terms, times = starts[2:8]
        numbers = whole.view(np.float64)
        size, stems = int(whole[bounds + count]), int(whole[own + count])
        return Read(
            Sparse(whole[bounds:columns], whole[columns : columns + size], numbers[values : values + size]),
            Sparse(whole[own:terms], whole[terms : terms + stems], numbers[times : times + stems]),
        )

    def _read(self, sizes: Ids, ids: Ids) -> Read:
        count, size = len(sizes), max(1, len(self.idf))
        keys, counts = np.unique(np.repeat(np.arange(count) * size, sizes) + ids, return_counts=True)
        owners, features = keys // size, keys % size
        return self.weighed(_bounds(owners, count), features, counts.astype(np.float64))

    def weighed(self, bounds: Ids, features: Ids, counts: Floats) -> Read:
        """The same of features that were counted."""
        count = len(bounds) - 1
        owners = np.repeat(np.arange(count), np.diff(bounds))
        kinds = self.kinds[features]
        block = owners * 2 + (kinds == NGRAM)
        values = (1 + np.log(counts)) * self.idf[features]
        lengths = np.sqrt(self._factor * np.bincount(block, values * values, minlength=2 * count))
        lengths[lengths == 0] = 1  # of function words alone
        scaled = values / lengths[block]
        if self._single:
            scaled = scaled.astype(np.float32).astype(np.float64)
        stems = kinds == TERM
        terms = Sparse(_bounds(owners[stems], count), features[stems], counts[stems])
        return Read(Sparse(bounds, features, scaled), terms)


def _bounds(owners: Ids, count: int) -> Ids:
    return np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=count))])


_known_logs: Floats = np.concatenate([[0.0], 1 + np.log(np.arange(1.0, 1024.0))])


def _logs(most: int) -> Floats:
    """1 + ln n at n."""
    global _known_logs
    found = _known_logs
    if most >= len(found):
        found = _known_logs = np.concatenate([[0.0], 1 + np.log(np.arange(1.0, 2.0 * most + 1))])
    return found


def scale(raw: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation of each feature over the entries that have it. (N, E, C) -> (N, E), (N, E)"""
    native = library()
    if native is None:
        return _scale(raw)
    raw = np.ascontiguousarray(raw, np.float64)
    N, E, C = raw.shape
    out = np.empty((2, N, E))
    at = address(out)
    native.scale(address(raw), N * E, C, LEAST, at, at + 8 * N * E)
    return out[0], out[1]


def _scale(raw: Floats) -> tuple[Floats, Floats]:
    there = ~np.isnan(raw)
    count = np.maximum(there.sum(axis=2), 1)
    mean = _sum(np.where(there, raw, 0.0)) / count
    apart = np.where(there, raw - mean[:, :, None], 0.0)
    deviation = np.sqrt(_sum(apart * apart) / count)
    return mean, np.where(deviation < LEAST, 1.0, deviation)


def _sum(numbers: Floats) -> Floats:
    """Over the last axis, as the kernel does."""
    padded = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % _LANES)])
    lanes = np.cumsum(padded.reshape(*padded.shape[:-1], -1, _LANES), axis=-2)
    found: Floats = np.zeros(numbers.shape[:-1])
    if lanes.shape[-2]:
        for lane in range(_LANES):
            found = found + lanes[..., -1, lane]
    return found


def fuse(raw: Floats, mean: Floats, spread: Floats, weights: Floats) -> Floats:
    """The weighted sum of standardised features (N, E, C): (N, C). NaN is what an entry lacks.

    Of an entry that lacks some features the others count for them: its sum is scaled by all weights over its own.
    """
    native = library()
    whole = float(weights.sum())
    if native is None:
        return _fuse(raw, mean, spread, weights, whole)
    raw, mean, spread = (np.ascontiguousarray(one, np.float64) for one in (raw, mean, spread))
    N, E, C = raw.shape
    out = np.empty((N, C))
    native.fuse(
        address(raw), N, E, C, address(mean), address(spread), address(weights), whole, LEAST,
        address(out),
    )  # fmt: skip
    return out


def _fuse(raw: Floats, mean: Floats, spread: Floats, weights: Floats, whole: float) -> Floats:
    total = np.zeros((len(raw), raw.shape[2]))
    there = ~np.isnan(raw)
    found = np.zeros_like(total)
    for e, weight in enumerate(weights.tolist()):
        added = weight * ((raw[:, e] - mean[:, e, None]) / spread[:, e, None])
        total += np.where(np.isnan(added), 0.0, added)
        found += np.where(there[:, e], weight, 0.0)
    lacking = ~there.all(axis=1) & (found < whole) & (found > 0)
    return np.where(lacking, total * (whole / np.maximum(found, LEAST)), total)


def best_of(scores: Floats, top: int | None) -> list[list[int] | None]:
    """Of each question (N, C) the places of the highest scores, best first, equal ones by place.

    None where all of several scores are equal: then no entry is better than another.
    """
    N, C = scores.shape
    native = library()
    if native is None or top is None or top >= C:
        return [_best(own, top) for own in scores]
    scores = np.ascontiguousarray(scores, np.float64)
    out = np.empty(N * top + N, dtype=np.int64)
    at = address(out)
    if native.best(address(scores), N, C, top, at, at + 8 * N * top):
        raise MemoryError("the native ranking ran out of memory")
    places, counts = out[: N * top].reshape(N, top).tolist(), out[N * top :].tolist()
    return [None if count < 0 else own for own, count in zip(places, counts, strict=True)]


def _best(scores: Floats, top: int | None) -> list[int] | None:
    if len(scores) > 1 and float(scores.min()) == float(scores.max()):
        return None
    found: list[int] = np.argsort(-scores, kind="stable")[:top].tolist()
    return found


class CountRows:
    """Rows of counts, and how long each is, of which BM25 is asked for some."""

    def __init__(self, counts: Rows, lengths: Floats, idf: Floats, constants: Sequence[float]) -> None:
        """`constants` are the idf of a term without one, the mean length, k1 and b."""
        self._kept = counts, lengths, idf
        self._at = (*counts.at[1:], address(lengths)), (address(idf), len(idf), *constants)
        self.serves = counts.data.dtype == np.float32

    def bm25(self, rows: Ids, terms: Ids, times: Floats) -> Floats | None:
        """The scores of one question with these rows; None where there is no kernel."""
        native = library()
        if native is None or not self.serves:
            return None
        terms, times = np.ascontiguousarray(terms), np.ascontiguousarray(times)
        rows = np.ascontiguousarray(rows, np.int64)
        out = np.empty(len(rows))
        asked = len(terms), address(terms), address(times)
        native.bm25_rows(*self._at[0], len(rows), address(rows), *self._at[1], *asked, address(out))
        return out


class Owned:
    """Which rows of a table each entry has: those from starts[n] on in `places`."""

    def __init__(self, starts: Ids, places: NDArray[np.int32]) -> None:
        self.starts, self.places = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(places, np.int32)
        self.at = address(self.starts), address(self.places)

    def __getitem__(self, entry: int) -> Ids:
        return self.places[self.starts[entry] : self.starts[entry + 1]].astype(np.int64)


def nearest_of(
    table: Rows, owned: Owned, questions: Sparse, pairs: tuple[Any, Any], scratch: Floats
) -> tuple[list[int], list[int]]:
    """For pairs of a question (ascending) and an entry: which row of the entry's own has the highest product.

    -1 where it has none; and how many rows have that product. `scratch` are zeros, one for each column.
    """
    count = len(pairs[0])
    work = np.empty((4, count), dtype=np.int64)
    work[0], work[1] = pairs
    native = library()
    if native is None:
        return _nearest(table, owned, questions, work[0].tolist(), work[1].tolist(), scratch)
    at = [address(work) + 8 * count * n for n in range(4)] if count else [0] * 4
    asked = address(questions.bounds), address(questions.columns), address(questions.values)
    native.nearest(count, *at[:2], *asked, *table.at, *owned.at, address(scratch), *at[2:])
    best, ties = work[2:].tolist()
    return best, ties


def _nearest(
    table: Rows, owned: Owned, questions: Sparse, asked: Sequence[int], entries: Sequence[int], scratch: Floats
) -> tuple[list[int], list[int]]:
    best, ties = [], []
    for question, entry in zip(asked, entries, strict=True):
        rows = owned[entry]
        columns, values = questions[question]
        scratch[columns] = values
        found = table.dot(scratch, rows)
        scratch[columns] = 0
        best.append(int(rows[found.argmax()]) if len(rows) else -1)
        ties.append(int((found == found.max()).sum()) if len(rows) else 0)
    return best, ties


def translated(table: Rows, shares: Rows, stems: Ids, beta: float, entries: Ids, scratch: Floats) -> Floats:
    """How likely entries are to say each stem: of itself, or by others that stand for it. (stems, entries)

    That is (1 - beta) of its share in the entry, and beta of the shares of all stems times their T(w|t), which is in
    the row of w in `table`; a stem behind its rows stands for itself alone. `scratch` are zeros, one for each stem.
    """
    native = library()
    stems, entries = np.ascontiguousarray(stems, np.int64), np.ascontiguousarray(entries, np.int64)
    out = np.empty((len(stems), len(entries)))
    if native is None:
        for n, stem in enumerate(stems.tolist()):
            others, values = table[stem] if stem < len(table) else (stems[:0], out[0, :0])
            scratch[others] = beta * values
            scratch[stem] += 1 - beta
            out[n] = shares.dot(scratch, entries)
            scratch[others] = scratch[stem] = 0
        return out
    asked, chosen = (len(stems), address(stems)), (len(entries), address(entries))
    native.translated(*asked, beta, len(table), *table.at, *shares.at, *chosen, address(scratch), address(out))
    return out
