"""Work by Parquet shards: made pairs scored by the plain command, in one process by shards, and on Ray.

    python -m experiments.benchmarks.shards --pairs 200000      # Ray's row needs the extra `ray`

Pairs of 50 words in 16 shards, scored by BM25 whose words are counted in 10,000 other texts. "start" is the time of
a run over one shard of one row, which has everything but the work; rates leave it out.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments import places
from experiments.reproduction.provenance import commit
from matchloom.basics.extras import has
from matchloom.basics.files import atomic_write
from matchloom.batch.run import run_batch
from matchloom.batch.works import ScoreWork
from matchloom.cli import main as matchloom

RESULTS = places.RESULTS / "shards.json"
SHARDS, WORDS, KNOWN = 16, 50, 50_000


def write_pairs(folder: Path, pairs: int, shards: int) -> Path:
    """Texts of words drawn by their rank."""
    folder.mkdir()
    draw = np.random.default_rng(0)
    for n in range(shards):
        count = pairs // shards
        words = np.minimum(draw.zipf(1.3, (count, WORDS)) - 1, KNOWN - 1)
        texts = [" ".join(f"word{word}" for word in row) for row in words.tolist()]
        ids = [f"q{n}-{m}" for m in range(count)]
        table = pa.table({"query": [" ".join(one.split()[:8]) for one in texts], "text": texts, "query_id": ids})
        pq.write_table(table, folder / f"part-{n:03}.parquet")
    return folder


def seconds_of(work: ScoreWork, source: Path, out: Path, engine: str) -> float:
    began = time.perf_counter()
    run_batch(work, source, out, engine=engine)
    return time.perf_counter() - began


def measured(home: Path, pairs: int) -> dict[str, Any]:
    shards, one = write_pairs(home / "pairs", pairs, SHARDS), write_pairs(home / "one", 1, 1)
    known = write_pairs(home / "known", 10_000, 1) / "part-000.parquet"
    work = ScoreWork("bm25", collection=str(known))
    rows: dict[str, Any] = {"pairs": pairs, "processors": os.cpu_count()}
    whole = home / "whole.parquet"
    pq.write_table(pa.concat_tables([pq.read_table(path) for path in sorted(shards.iterdir())]), whole)
    plain = {}
    for name, path in (("start", one / "part-000.parquet"), ("whole", whole)):
        began = time.perf_counter()
        assert (
            matchloom(
                ["score", "bm25", str(path), "--collection", str(known), "--out", str(home / f"{name}.out.parquet")]
            )
            == 0
        )
        plain[name] = time.perf_counter() - began
    rows["plain"] = row(plain["start"], plain["whole"], pairs)
    for engine in ("local", *(["ray"] if has("ray") else [])):
        start = seconds_of(work, one, home / f"{engine}-one", engine)
        rows[engine] = row(start, seconds_of(work, shards, home / engine, engine), pairs)
    made = pq.read_table(home / "whole.out.parquet")["score"].to_pylist()
    for engine in ("local", *(["ray"] if has("ray") else [])):
        tables = [pq.read_table(path)["score"].to_pylist() for path in sorted((home / engine).iterdir())]
        rows[engine]["equal"] = [score for table in tables for score in table] == made
        rows[engine]["of plain"] = round(rows[engine]["pairs a second"] / rows["plain"]["pairs a second"], 2)
    return rows


def row(start: float, seconds: float, pairs: int) -> dict[str, Any]:
    """Figures of one way."""
    rate = pairs / max(seconds - start, 1e-9)
    return {"start, seconds": round(start, 2), "seconds": round(seconds, 2), "pairs a second": round(rate)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        rows = {"commit": commit(), "load": round(os.getloadavg()[0], 1), **measured(Path(home), given.pairs)}
    print(json.dumps(rows, indent=2))
    with atomic_write(given.out) as file:
        file.write(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
