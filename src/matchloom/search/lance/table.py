"""The table of an archive: pairs, their words and their sentence vectors in LanceDB, and the few questions we ask it.

What LanceDB gives, and how it is used here (as of 0.40):

- A write is one commit: a new version that is there whole or not at all, also after `kill -9`. Writers wait for each
  other (see manifest.py), because simultaneous upserts of one id may leave it twice.
- A handle is one version: the searches and the `take` behind one answer see the same rows.
- Rows that an index does not hold yet are searched one by one, and their full-text scores follow statistics of their
  own. So full-text scores only choose candidates here; the scores that are shown are computed from the pairs.
- `optimize` brings all indices up to date, and merges files and drops old versions in the same breath. It writes both
  indices anew, which takes a minute of a processor at ten million rows. So it waits until 2,500 rows are new, a
  thousandth of a larger table or a tenth of a small one, or the writes have left many small files: most appends touch
  no index, and no search looks through more than that one by one.
- A row that is deleted or replaced stays in its file, unseen, until the file is merged or the table is copied.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matchloom.basics.arrays import distinct
from matchloom.search.lance.connection import doctor, run, told_in_one_line
from matchloom.search.lance.rows import PairRow
from matchloom.search.lance.seals import check_newest
from matchloom.types import MatchloomError

Vectors = NDArray[np.float32]
RowIds = list[int]

TEXTS = PairRow._fields
SAME = "same"  # what rows with the same answer share
VECTORS = "vectors"  # of the question and of the answer, one behind the other
POSITIONS = ("question_positions", "answer_positions")  # bytes, see positions.py
_FLAT = 20_000  # rows up to which every vector is compared: exact, and as fast as an index
_FEW, _MANY = 500, 2_500  # rows outside the indices: never felt, and some ten milliseconds in each search
_PART_OUTSIDE = 1_000  # of a large table one row in so many: a search takes a sixth longer at the most
_FILES = 32  # small ones, from as many small writes: a search opens them all
_RETRAIN = 4  # the vector index is trained again when the table has grown this many times
_KEEP = timedelta(minutes=10)  # a reader looks for a new version at every search, so old ones soon have no reader
_PROBES, _PART = 32, 30  # partitions of the vector index that a search looks into: at least so many, one in so many


class Store:
    """One version of the table."""

    def __init__(self, folder: Path | str, name: str, table: Any) -> None:
        self.folder = folder
        self.name = name
        self._table = table
        self._probes: int | None = None

    @classmethod
    def create(
        cls,
        database: Any,
        folder: Path | str,
        name: str,
        size: int | None,
        *,
        positions: bool = False,
        unlocked: bool = False,
    ) -> Store:
        """An empty table, with two vectors of this size to a pair where there are any, and with `positions` these.

        Where writers are `unlocked`, LanceDB is told that keys are unique: of two that insert one key side by side the
        second then tries again; else the key would be there twice.
        """
        fields = [pa.field(column, pa.string()) for column in (*TEXTS, SAME, "words")]
        if unlocked:
            fields[0] = fields[0].with_nullable(False)
        if size is not None:
            fields.append(pa.field(VECTORS, pa.list_(pa.float32(), 2 * size)))
        if positions:
            fields += [pa.field(column, pa.binary()) for column in POSITIONS]
        with told_in_one_line(folder):
            made = cls(folder, name, run(database.create_table(name, schema=pa.schema(fields))))
            if unlocked:
                run(made._table.set_unenforced_primary_key("key"))
            made._index_words()  # also of no rows: from now on the index says how words are cut
            return made

    @classmethod
    def open(cls, database: Any, folder: Path | str, name: str) -> Store:
        """The newest version."""
        check_newest(folder, name)
        with told_in_one_line(folder):
            return cls(folder, name, run(database.open_table(name)))

    def __len__(self) -> int:
        with told_in_one_line(self.folder):
            return int(run(self._table.count_rows()))

    @property
    def version(self) -> int:
        """LanceDB's number of it: one more with each commit."""
        with told_in_one_line(self.folder):
            return int(run(self._table.version()))

    # ---- reading

    def nearest(self, words: Sequence[str], vector: Vectors | None, count: int) -> tuple[RowIds, RowIds]:
        """The rows whose words score highest by BM25, and those whose vectors have the largest product with this one
        (as long as both together), best first."""
        with told_in_one_line(self.folder):
            return run(self._nearest(words, vector, count))

    async def _nearest(self, words: Sequence[str], vector: Vectors | None, count: int) -> tuple[RowIds, RowIds]:
        by_words, by_vector = await asyncio.gather(self._by_words(words, count), self._by_vector(vector, count))
        return by_words, by_vector

    async def _by_words(self, words: Sequence[str], count: int) -> RowIds:
        from lancedb.query import MatchQuery

        if not words:
            return []
        query = MatchQuery(" ".join(words), "words")  # type: ignore[call-arg]
        return await _row_ids(self._table.query().nearest_to_text(query).select(["_score"]), count)

    async def _by_vector(self, vector: Vectors | None, count: int) -> RowIds:
        if vector is None:
            return []
        if self._probes is None:
            self._probes = probes_of(await self._table.count_rows())
        query = self._table.query().nearest_to(vector).column(VECTORS).distance_type("dot").nprobes(self._probes)
        return await _row_ids(query.select(["_distance"]), count)

    def take(self, rows: RowIds, columns: Sequence[str]) -> pa.Table:
        """These columns of these rows (there must be some), in the order of the rows."""
        with told_in_one_line(self.folder):
            found = run(self._table.take_row_ids(rows).select(list(columns)).with_row_id().to_arrow())
            found.validate(full=True)  # a flipped bit may leave what is no UTF-8
        place = {row: n for n, row in enumerate(found["_rowid"].to_pylist())}
        try:
            return found.take([place[row] for row in rows])
        except KeyError:
            raise MatchloomError(
                f"{self.folder} is damaged (an index names rows that are not there); {doctor(self.folder)}"
            ) from None

    def find(self, column: str, values: Sequence[str]) -> dict[str, RowIds]:
        """The rows that hold these values in a column, by value."""
        found: dict[str, RowIds] = {}
        with told_in_one_line(self.folder):
            for start in range(0, len(values), 1000):
                one_of = f"{column} IN ({_quoted(values[start : start + 1000])})"
                hits = run(self._table.query().where(one_of).select([column]).with_row_id().to_arrow())
                for value, row in zip(hits[column].to_pylist(), hits["_rowid"].to_pylist(), strict=True):
                    found.setdefault(value, []).append(row)
        return found

    def sample(self, columns: Sequence[str], count: int) -> pa.Table:
        """These columns of at most `count` rows, spread evenly over the table."""
        rows = len(self)
        places = np.linspace(0, rows - 1, min(count, rows)).astype(int).tolist()
        with told_in_one_line(self.folder):
            if not places:
                return run(self._table.to_arrow()).select(list(columns))
            found = run(self._table.take_offsets(places).select(list(columns)).to_arrow())
            found.validate(full=True)
            return found

    def answers(self) -> int:
        """How many different answers there are."""
        found = Distinct()
        for batch in self.batches(100_000, [SAME]):
            found.take(batch.column(SAME).to_pylist())
        return len(found)

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        names: list[str] = self.schema.names
        return names

    def batches(
        self, size: int, columns: Sequence[str] | None = None, *, with_rows: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """All rows in batches of `size`, with these columns or all, and `with_rows` with their numbers."""
        with told_in_one_line(self.folder):
            query = self._table.query() if columns is None else self._table.query().select(list(columns))
            found = run((query.with_row_id() if with_rows else query).to_batches(max_batch_length=size))
            while (batch := run(anext(found, None))) is not None:
                batch.validate(full=True)
                yield batch

    # ---- writing (the caller holds the lock)

    def upsert(self, rows: pa.Table) -> int:
        """Add rows; one whose key is there already takes its place. One commit. How many took a place."""
        with told_in_one_line(self.folder):
            merge = self._table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
            return int(run(merge.execute(self._fitted(rows))).num_updated_rows)

    @property
    def schema(self) -> pa.Schema:
        """Its columns and their types."""
        with told_in_one_line(self.folder):
            return run(self._table.schema())

    def append(self, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Add rows whose keys are known to be new, also as a stream. One commit, whatever its size."""
        with told_in_one_line(self.folder):
            run(self._table.add(self._fitted(rows) if isinstance(rows, pa.Table) else rows))

    def _fitted(self, rows: pa.Table) -> pa.Table:
        """A key that may not be missing says so."""
        if self.schema.field("key").nullable:
            return rows
        return rows.cast(pa.schema([field.with_nullable(field.name != "key") for field in rows.schema]))

    def delete(self, ids: Sequence[str]) -> int:
        """Remove the rows of these ids or text_ids; how many there were."""
        before = len(self)
        with told_in_one_line(self.folder):
            for start in range(0, len(ids), 1000):
                some = _quoted(ids[start : start + 1000])
                run(self._table.delete(f"id IN ({some}) OR text_id IN ({some})"))
        return before - len(self)

    def maintain(self, trained_on: int) -> int:
        """Bring indices up to date if enough rows are new; the number of rows that the vector index was trained on."""
        from lancedb.index import IvfFlat

        rows = len(self)
        with told_in_one_line(self.folder):
            behind = max((index.num_unindexed_rows or 0 for index in run(self._table.list_indices())), default=0)
            files = run(self._table.stats())["fragment_stats"]["num_fragments"]
            if rows and behind == rows:
                self._index_words()
                behind = 0
            if behind > min(max(_FEW, rows // 10), max(_MANY, rows // _PART_OUTSIDE)) or files > _FILES + rows // 5_000:
                run(self._table.optimize(cleanup_older_than=_KEEP))
            vectors = VECTORS in run(self._table.schema()).names
            if vectors and rows > _FLAT and (trained_on == 0 or rows >= _RETRAIN * trained_on):
                run(self._table.create_index(VECTORS, config=IvfFlat(distance_type="dot"), replace=True))
                return rows
        return trained_on

    def _index_words(self) -> None:
        from lancedb.index import FTS

        # Our words, as they are: no stemming, folding or dropping on top of our own.
        plain = FTS(
            base_tokenizer="whitespace",
            max_token_length=None,
            lower_case=False,
            stem=False,
            remove_stop_words=False,
            ascii_folding=False,
        )
        run(self._table.create_index("words", config=plain, replace=True))

    def status(self) -> dict[str, int]:
        """Rows that the full-text index and the vector index hold."""
        found = self.indexed()
        return {"words_indexed": found.get("words", (0, 0))[0], "vectors_indexed": found.get(VECTORS, (0, 0))[0]}

    def indexed(self) -> dict[str, tuple[int, int]]:
        """For each column that has an index, how many rows are inside and outside."""
        with told_in_one_line(self.folder):
            indices = run(self._table.list_indices())
        return {one.columns[0]: (int(one.num_indexed_rows or 0), int(one.num_unindexed_rows or 0)) for one in indices}


def probes_of(rows: int) -> int:
    """How many partitions of the vector index a search looks into.

    LanceDB makes as many partitions as the root of the rows. 32 of them hold what is best at a million pairs, and miss
    some of it at more (`experiments.benchmarks.archive`); one in thirty does not.

    >>> probes_of(10_000), probes_of(2_400_000), probes_of(10_000_000)
    (32, 52, 106)
    """
    return max(_PROBES, math.ceil(math.sqrt(rows) / _PART))


class Distinct:
    """How many different texts there were, of which eight bytes each are kept: a table may have any number."""

    def __init__(self) -> None:
        self._hashes: list[NDArray[np.int64]] = []

    def take(self, texts: Sequence[str | None]) -> None:
        """Look at some more."""
        self._hashes.append(np.fromiter(map(hash, texts), np.int64, len(texts)))

    def __len__(self) -> int:
        return len(distinct(np.concatenate(self._hashes))) if self._hashes else 0


async def _row_ids(query: Any, count: int) -> RowIds:
    found = await query.with_row_id().limit(count).to_arrow()
    rows: RowIds = found["_rowid"].to_pylist()
    return rows


def rows_of(
    columns: dict[str, list[str]], vectors: tuple[Vectors, Vectors] | None, more: dict[str, Any] | None = None
) -> pa.Table:
    """Rows as the table holds them, with `more` columns."""
    arrays: dict[str, Any] = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    if vectors is not None:
        both = np.concatenate(vectors, axis=1)
        arrays[VECTORS] = pa.FixedSizeListArray.from_arrays(pa.array(both.ravel()), both.shape[1])
    return pa.table(arrays | (more or {}))


def vectors_of(rows: pa.Table) -> tuple[Vectors, Vectors]:
    """The question vectors and the answer vectors of rows that hold them."""
    width = rows.schema.field(VECTORS).type.list_size
    both = np.asarray(rows[VECTORS].combine_chunks().flatten()).reshape(len(rows), width)
    return both[:, : width // 2], both[:, width // 2 :]


def unit(vectors: Vectors) -> Vectors:
    """Vectors at a length of one, so that their product is a cosine; most models' have it already."""
    found: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32(1e-12))
    return found


def _quoted(values: Sequence[str]) -> str:
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)
