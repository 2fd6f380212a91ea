"""A LanceDB archive of shards: an engine makes their rows side by side, and one commit puts all of them into the table.

Reading, stems and vectors take nearly all of the time and are an engine's work, by shard, written whole, resumed. What
is left for one process is a copy: it streams the rows into the table, so that an archive has all of them or none, and
makes the indices.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from matchloom import artifact
from matchloom.basics.arrays import distinct
from matchloom.basics.extras import named_extras, need
from matchloom.basics.stores import one_place, shown
from matchloom.batch.run import run_batch
from matchloom.batch.shards import opened, read_tables
from matchloom.batch.works import Function, digest_of, pairs_of
from matchloom.data.formats.columns import Columns
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Added, MatchloomError


@dataclass(frozen=True)
class IndexWork:
    """The rows of an archive: texts, the stems of their words, and the vectors of a matcher that has any.

    Args:
        matcher: The matcher's folder; BM25 alone without.
        tokenizer: How words are found, where there is no matcher.
        columns: Your names of the columns.
    """

    matcher: str | None = None
    tokenizer: str = "english"
    columns: Columns | None = None
    whole: ClassVar[bool] = False

    def open(self) -> Function:
        """The function that makes rows."""
        with named_extras(self.matcher or "an archive", "archive"):
            from matchloom.search.lance import encoding
            from matchloom.search.lance.rows import PairRow
        loaded = encoding.load(self.matcher)
        settings = encoding.manifest_of("pairs-1", loaded, self.matcher, Tokenizer(self.tokenizer))

        def rows(table: Any) -> Any:
            pairs = [pair for pair in pairs_of(table, self.columns, ids=False) if pair.is_positive]
            made = [PairRow.of(pair) for pair in pairs]
            # Of no pairs a matcher makes no vectors; the columns must be there all the same.
            return encoding.rows(settings, loaded, made or [PairRow("", "", "", "", "")]).slice(0, len(made))

        return rows

    def digest(self) -> str:
        """Of the settings and the matcher."""
        return digest_of(self, [self.matcher])


def index_shards(
    folder: Path | str,
    work: IndexWork,
    source: Path | str,
    rows: Path | str,
    *,
    engine: str = "local",
    address: str | None = None,
    progress: bool = False,
) -> Added:
    """Build a new LanceDB archive from Parquet shards: what `add` of the same pairs would make, by one commit.

    Of two pairs with one key the later counts, as in `add`. A build that was stopped goes on with the rows that are
    finished; they are removed once they are in the archive.

    Args:
        folder: Where the archive is to be: a new folder, or a URI of an object store.
        work: The matcher or tokenizer, and the names of the columns.
        source: A folder of Parquet files, or one file.
        rows: A folder for the rows until they are in the archive; machines of a cluster share it.
        engine: As for `run_batch`, as is `address`.
        address: Of a Ray cluster.
        progress: Whether to show a bar.
    """
    place, made = one_place("folder", folder), Path(rows).resolve()
    with named_extras(shown(str(place)), "archive"):
        from matchloom.search.lance.collection import LanceCollection

    def refuse_there() -> None:
        kind = artifact.kind_of(place)
        if kind is not None and (kind != "archive" or len(LanceCollection.open(place))):
            raise MatchloomError(
                f"{shown(str(place))} is there already; shards build a new archive: 'matchloom add' adds to it",
                code="exists",
            )
        if kind is not None:
            LanceCollection.open(place).erase()  # a build that was cut off

    refuse_there()
    done = run_batch(work, source, made, engine=engine, address=address, progress=progress)
    paths = done.files
    with artifact.writing(made):  # nobody removes or replaces rows meanwhile
        later, count = _replaced(paths)
        read = _count(Path(job.source) for job in done.jobs)
        if not count:
            raise MatchloomError(
                f"{source} has no pair with a right answer, so there is nothing to archive", code="no_data"
            )
        refuse_there()
        words = None if work.matcher else Tokenizer(work.tokenizer)
        index = LanceCollection.create(place, work.matcher, tokenizer=words)
        try:
            new = index.build(lambda schema: _rows_of(paths, schema, later))
        except BaseException:
            with suppress(MatchloomError):  # a store that is lost: what is left is empty
                index.erase()
            raise
        for path in paths:
            path.unlink()
    shutil.rmtree(made, ignore_errors=True)
    return Added(new, count - new, read - count)


def _rows_of(paths: Sequence[Path], schema: Any, replaced: Sequence[Any]) -> Iterator[Any]:
    """All rows but those that later ones replace."""
    arrow = need("pyarrow")
    for path, without in zip(paths, replaced, strict=True):
        first = 0
        for table in read_tables(path):
            kept = np.ones(len(table), dtype=bool)
            kept[without[(without >= first) & (without < first + len(table))] - first] = False
            first += len(table)
            rows = table.filter(arrow.array(kept)).select(schema.names).replace_schema_metadata(None)
            yield from rows.cast(schema).to_batches()


def _replaced(paths: Sequence[Path]) -> tuple[list[Any], int]:
    """For each shard the rows whose key comes again later, and how many rows there are in all.

    Of each key eight bytes are in memory; where two of these are equal, the keys themselves are compared.
    """
    digests = [np.fromiter((_digest(key) for key in _keys_of(path)), np.uint64) for path in paths]
    every = np.sort(np.concatenate(digests)) if digests else np.empty(0, np.uint64)
    twice = distinct(every[1:][every[1:] == every[:-1]])
    last: dict[str, tuple[int, int]] = {}
    found: list[list[int]] = [[] for _ in paths]
    for shard, path in enumerate(paths):
        if not len(twice) or not np.isin(digests[shard], twice).any():
            continue
        suspect = set(np.flatnonzero(np.isin(digests[shard], twice)).tolist())
        for row, key in enumerate(_keys_of(path)):
            if row in suspect:
                if key in last:
                    found[last[key][0]].append(last[key][1])
                last[key] = (shard, row)
    return [np.array(sorted(one), dtype=np.int64) for one in found], len(every)


def _keys_of(path: Path) -> Iterator[str]:
    for table in read_tables(path, ["key"]):
        yield from table["key"].to_pylist()


def _digest(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


def _count(paths: Iterable[Path]) -> int:
    """Rows, by the footers."""
    total = 0
    for path in paths:
        with opened(path) as file:
            total += file.metadata.num_rows
    return total
