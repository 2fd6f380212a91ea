"""A collection as it is at one moment: the entries that are alive, and how they score.

A view never changes, so that a search sees one state from its first step to its last. A change makes another view,
which shares all that is the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.basics.arrays import distinct
from matchloom.basics.naming import listed
from matchloom.data.entries import Entry
from matchloom.data.identity import normalize_text
from matchloom.lexical.columns import Floats, Ids
from matchloom.search.entries import Entries
from matchloom.search.features.bm25 import BM25Feature
from matchloom.search.features.dense import DenseFinder
from matchloom.search.fusion import scale
from matchloom.search.journal import Change
from matchloom.search.learning import CANDIDATES
from matchloom.search.queries import Queries
from matchloom.search.segment import WHOLE, Segment
from matchloom.types import MatchloomError

Where = Mapping[str, str | Sequence[str]]
_PARTS = 8  # small segments, from which the last ones are joined


class Scored(NamedTuple):
    """What every feature says of some questions, for the entries that come into question."""

    rows: Ids  # (C,) among all rows of a view, ordered by id
    raw: Floats  # (N, E, C)
    mean: Floats  # (N, E)
    spread: Floats  # (N, E)


@dataclass(frozen=True, eq=False)
class View:
    """Segments, the fitted one first, and which of their rows are alive. Rows are numbered through."""

    segments: tuple[Segment, ...]
    alive: NDArray[np.bool_]
    carried: Ids  # the row of the fitted segment whose classifiers still speak for a row, else -1
    changes: int = 0  # entries that were put or removed since the fit
    offsets: tuple[int, ...] = field(default=(0,))

    @classmethod
    def of(cls, segment: Segment) -> View:
        """A segment as it was fitted."""
        size = len(segment.entries)
        return cls((segment,), np.ones(size, dtype=bool), np.arange(size))

    def __len__(self) -> int:
        return int(self.alive.sum())

    @property
    def base(self) -> Segment:
        """What was fitted."""
        return self.segments[0]

    # ---- what is there

    @cached_property
    def order(self) -> Ids:
        """The rows that are alive, ordered by id."""
        if len(self.segments) == 1:
            return np.flatnonzero(self.alive)
        order = np.argsort(np.concatenate([np.arange(len(self.base.entries)), self._later]), kind="stable")
        return order[self.alive[order]]

    @cached_property
    def _later(self) -> Floats:
        """Where each row that was added since stands among the fitted ones, which are in the order of ids."""
        ids = self.base.entries.ids
        keys = [(bisect_left(ids, one), one) for segment in self.segments[1:] for one in segment.entries.ids]
        places = np.zeros(len(keys))
        for rank, n in enumerate(sorted(range(len(keys)), key=lambda n: keys[n])):
            places[n] = keys[n][0] - 0.5 + rank / (2 * len(keys) + 1)
        return places

    def entry(self, row: int) -> Entry:
        """The entry of a row."""
        segment, own = self.find(row)
        return segment.entries[own]

    def find(self, row: int) -> tuple[Segment, int]:
        """The segment of a row, and where it stands there."""
        n = bisect_right(self.offsets, row) - 1
        return self.segments[n], row - self.offsets[n]

    def row_of(self, name: str) -> int | None:
        """The row of an id that is alive; other ids of an answer count, too."""
        for offset, segment in reversed(list(zip(self.offsets, self.segments, strict=True))):
            n = segment.entries.row(name)
            if n is not None and self.alive[offset + n]:
                return offset + n
        return None

    def row_of_text(self, text: str, name: str = "") -> int | None:
        """The row of an answer, known by its text or else by its id."""
        for offset, segment in reversed(list(zip(self.offsets, self.segments, strict=True))):
            n = segment.entries.find(text)
            if n is not None and self.alive[offset + n]:
                return offset + n
        return self.row_of(name) if name else None

    def entries(self) -> Entries:
        """All entries that are alive, as one table."""
        if len(self.segments) == 1 and self.alive.all():
            return self.base.entries
        rows = self.order.tolist()
        return Entries.listed(map(self.entry, rows), *self._others(rows), self.base.entries.note)

    def _others(self, rows: Sequence[int | None]) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
        """By which other ids and other texts the answers of these rows are known."""
        homes = [None if row is None else self.find(row) for row in rows]
        ids = [
            () if home is None or not home[0].entries.other_ids else home[0].entries.other_ids[home[1]]
            for home in homes
        ]
        texts = [
            () if home is None or not home[0].entries.other_texts else home[0].entries.other_texts[home[1]]
            for home in homes
        ]
        return ids, texts

    def nearest(self, queries: Queries, asked: Sequence[int], rows: Sequence[int]) -> list[str | None]:
        """For pairs of a question (ascending) and a row: the known question of the row that is nearest."""
        if len(self.segments) == 1:
            return self.base.nearest(queries, asked, rows)
        found: list[str | None] = [None] * len(rows)
        for offset, segment in zip(self.offsets, self.segments, strict=True):
            own = [n for n, row in enumerate(rows) if offset <= row < offset + len(segment.entries)]
            if own:
                near = segment.nearest(queries, [asked[n] for n in own], [rows[n] - offset for n in own])
                for n, question in zip(own, near, strict=True):
                    found[n] = question
        return found

    @cached_property
    def _later_questions(self) -> dict[str, list[int]]:
        """Of entries that were changed since the fit: the rows that have a question, as it is normalised."""
        found: dict[str, list[int]] = {}
        for offset, segment in zip(self.offsets[1:], self.segments[1:], strict=True):
            for row, own in enumerate(segment.entries.questions, start=offset):
                for question in own if self.alive[row] else ():
                    found.setdefault(normalize_text(question), []).append(row)
        return found

    @cached_property
    def lacks(self) -> bool:
        """Whether entries that were changed since lack what has to be learnt."""
        return len(self.segments) > 1 and any(feature is None for feature in self.segments[-1].features)

    def having(self, question: str) -> tuple[list[int], list[int]]:
        """Rows that were changed since the fit and have exactly this question; if there are any, all that have it."""
        later = self._later_questions.get(normalize_text(question), [])
        return later, [*self.base.having(question), *later] if later else []

    # ---- changes

    def changed(self, change: Change) -> View:
        """After a change: entries that are put replace those of the same id."""
        gone = [row for name in change.remove if (row := self.row_of(name)) is not None]
        old = {one.id: self.row_of(one.id) for one in change.put}
        alive = self.alive.copy()
        alive[[row for row in [*gone, *old.values()] if row is not None]] = False
        number = self.changes + len(gone) + len(change.put)
        if not change.put:
            return View(self.segments, alive, self.carried, number, self.offsets)
        put = sorted({one.id: one for one in change.put}.values())
        carried = [self._carries(one, old[one.id]) for one in put]
        made = View(
            (*self.segments, self.base.extended(Entries.listed(put, *self._others([old[one.id] for one in put])))),
            np.concatenate([alive, np.ones(len(put), dtype=bool)]),
            np.concatenate([self.carried, np.array(carried, dtype=np.int64)]),
            number,
            (*self.offsets, len(alive)),
        )
        return made._joined()

    def _carries(self, entry: Entry, row: int | None) -> int:
        """The fitted row whose classifiers still speak for an entry that was changed: one that has kept a question."""
        if row is None or self.carried[row] < 0:
            return -1
        known = self.base.entries[int(self.carried[row])]
        kept = set(known.questions) & set(entry.questions) or (known.text == entry.text and not known.questions)
        return int(self.carried[row]) if kept else -1

    def _joined(self) -> View:
        """With the last small segments as one, where there are many."""
        if len(self.segments) <= _PARTS:
            return self
        first = self.offsets[1]
        rows = [row for row in range(first, len(self.alive)) if self.alive[row]]
        rows.sort(key=lambda row: self.entry(row).id)
        joined = self.base.extended(Entries.listed(map(self.entry, rows), *self._others(rows)))
        alive = np.concatenate([self.alive[:first], np.ones(len(rows), dtype=bool)])
        carried = np.concatenate([self.carried[:first], self.carried[rows]])
        return View((self.base, joined), alive, carried, self.changes, (0, first))

    # ---- searching

    def matching(self, where: Where | None) -> NDArray[np.bool_] | None:
        """Which rows are alive and have these values in the user's own columns; None where all are alive."""
        if where is None:
            return None if self._all_alive else self.alive
        mask = self.alive.copy()
        for name, wanted in where.items():
            values = {wanted} if isinstance(wanted, str) else set(wanted)
            here = np.zeros(len(mask), dtype=bool)
            for value in values:
                here[self._column(name).get(value, [])] = True
            mask &= here
        return mask

    @cached_property
    def _all_alive(self) -> bool:
        return bool(self.alive.all())

    def _column(self, name: str) -> Mapping[str, list[int]]:
        """Where each value of a column stands."""
        found = self._columns.get(name)
        if found is None:
            raise MatchloomError(
                f"no entry has a column {name[:200]!r}; there are {listed(sorted(self._columns)) or 'none'}",
                code="unknown_name",
            )
        return found

    @cached_property
    def _columns(self) -> dict[str, dict[str, list[int]]]:
        found: dict[str, dict[str, list[int]]] = {}
        for offset, segment in zip(self.offsets, self.segments, strict=True):
            for n, own in enumerate(segment.entries.columns):
                for name, value in own.items():
                    found.setdefault(name, {}).setdefault(value, []).append(offset + n)
        return found

    def scored(self, queries: Queries, where: Where | None = None) -> list[Scored]:
        """What every feature says of questions: for all of them together, or one by one in a large collection."""
        mask = self.matching(where)
        if self.base.whole or (mask is not None and int(mask.sum()) <= CANDIDATES):
            rows = self.order if mask is None else self.order[mask[self.order]]
            return [self._whole(queries, rows)]
        return [self._candidates(queries.one(n), mask) for n in range(len(queries))]

    def _whole(self, queries: Queries, rows: Ids) -> Scored:
        raw = np.concatenate([segment.scores(queries) for segment in self.segments], axis=2)
        if len(self.segments) > 1:
            self._carry(raw)
        if len(rows) != raw.shape[2] or len(self.segments) > 1:
            raw = np.ascontiguousarray(raw[:, :, rows])
        return self._made(len(queries), rows, raw)

    def _candidates(self, query: Queries, mask: NDArray[np.bool_] | None) -> Scored:
        """The best of the fitted segment, and all of what was added since."""
        if len(self.segments) == 1:
            chosen = self._best(query, mask)
            return self._made(1, chosen, self.base.some(query, chosen)[None])
        size = self.offsets[1]
        alive = None if mask is None else mask[:size]
        chosen = self._best(query, alive)
        later = np.arange(size, len(self.alive))
        later = later if mask is None else later[mask[size:]]
        raw = [self.base.some(query, chosen)]
        for offset, segment in zip(self.offsets[1:], self.segments[1:], strict=True):
            own = later[(later >= offset) & (later < offset + len(segment.entries))] - offset
            raw.append(segment.some(query, own))
        rows = np.concatenate([chosen, later])
        found = np.concatenate(raw, axis=1)[None]
        self._carry_some(query, rows, found[0])
        if len(later):
            order = np.argsort(np.concatenate([chosen, self._later[later - size]]), kind="stable")
            rows, found = rows[order], np.ascontiguousarray(found[:, :, order])
        return self._made(1, rows, found)

    def _best(self, query: Queries, alive: NDArray[np.bool_] | None) -> Ids:
        """Candidates of the fitted segment, by row."""
        found: list[Ids] = []
        for name in ("bm25_doc", "dense_nearest", "bm25_ans", "dense_text"):
            feature = self.base.feature(name)
            others = 0 if isinstance(feature, BM25Feature) else 1  # that may have found some before
            if isinstance(feature, (BM25Feature, DenseFinder)) and len(found) <= others:
                found.append(feature.candidates(query, CANDIDATES, alive))
        if len(found) == 1:
            found[0].sort()
            return found[0]
        return distinct(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)

    def _carry(self, raw: Floats) -> None:
        """Give changed entries what classifiers say of them as they were."""
        rows = np.flatnonzero(self.carried[self.offsets[1] :] >= 0) + self.offsets[1]
        for e, feature in enumerate(self.segments[-1].features):
            if feature is None:
                raw[:, e, rows] = raw[:, e, self.carried[rows]]

    def _carry_some(self, query: Queries, rows: Ids, raw: Floats) -> None:
        """The same for some rows and one question. (E, C)"""
        changed = np.flatnonzero((rows >= len(self.base.entries)) & (self.carried[rows] >= 0))
        for e, feature in enumerate(self.segments[-1].features):
            known = self.base.features[e]
            if feature is None and known is not None and len(changed):
                raw[e, changed] = known.some(query, self.carried[rows[changed]])

    def _made(self, count: int, rows: Ids, raw: Floats) -> Scored:
        if not len(rows):
            empty = np.zeros((count, raw.shape[1]))
            return Scored(rows, raw, empty, empty + 1)
        mean, spread = scale(raw)
        return Scored(rows, raw, mean, spread)


assert WHOLE > CANDIDATES  # a small collection needs no candidates
