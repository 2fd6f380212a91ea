"""Rows of Parquet files and of Arrow's tables, a few in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from matchloom.basics.extras import need
from matchloom.basics.files import open_bytes
from matchloom.data.formats.columns import Columns, find_columns
from matchloom.data.formats.row import OwnColumns, Row
from matchloom.data.formats.shards import damaged

_BATCH = 1_000  # rows of a table that are Python objects at a time


def parquet_rows(path: Path, given: Columns | None, *, whole: bool = True) -> Iterator[Row]:
    """The rows of a Parquet file. Columns that we do not know are read, as the user's own, only if `whole`."""
    parquet, pyarrow = need("pyarrow.parquet", str(path)), need("pyarrow")
    with open_bytes(path) as stream:
        try:
            file = parquet.ParquetFile(stream, pre_buffer=False)
            names = file.schema_arrow.names
            known = find_columns(str(path), names, given, header=False).values()
            wanted = list(range(len(names))) if whole else sorted(known)
            # In this thread: others would still read a file of Python's when a column is damaged and the process ends.
            columns = [names[i] for i in wanted]
            batches = file.iter_batches(batch_size=_BATCH, columns=columns, use_threads=False)
            yield from table_rows(str(path), columns, batches, given)
        except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
            raise damaged(path, error) from None


def table_rows(source: str, names: Sequence[str], batches: Iterable[Any], given: Columns | None) -> Iterator[Row]:
    """The rows of Arrow's record batches, whose columns have these names."""
    columns = find_columns(source, names, given, header=False)
    number = 0
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH):
            some = batch.slice(start, _BATCH)
            found = [some.column(i).to_pylist() for i in range(len(names))]
            for values in zip(*found, strict=True):
                number += 1
                row = {name: values[i] for name, i in columns.items()}
                yield Row(f"row {number}", row, OwnColumns(names, values), columns)
