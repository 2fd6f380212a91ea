"""Small shards of pairs, and what a work makes of them in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

WORDS = ["loom", "mill", "saw", "oven", "press", "forge", "kiln", "wheel", "plough", "anvil", "churn", "lathe"]


def make_shards(folder: Path, shards: int = 4, rows: int = 30) -> Path:
    """Questions with an answer each, an own column of numbers, and a query_id."""
    folder.mkdir(parents=True)
    for shard in range(shards):
        numbers = [shard * rows + n for n in range(rows)]
        table = pa.table(
            {
                "own": pa.array(numbers, pa.int32()),
                "question": [f"what is a {WORDS[n % 12]} number {n} for?" for n in numbers],
                "answer": [f"a {WORDS[n % 12]} makes {WORDS[(n * 7) % 12]} of kind {n % 17}" for n in numbers],
                "query_id": [f"q{n}" for n in numbers],
            }
        )
        pq.write_table(table, folder / f"part-{shard:03}.parquet")
    return folder


def read_folder(folder: Path) -> dict[str, Any]:
    """All rows by shard."""
    return {path.name: pq.read_table(path).to_pydict() for path in sorted(folder.glob("*.parquet"))}
