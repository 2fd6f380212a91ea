"""Training on Parquet shards: peak memory as pairs grow, and pairs a second beside the same pairs in memory.

    python -m experiments.benchmarks.stream --sizes 100000 1000000     # to results/stream.json
    python -m experiments.benchmarks.stream --sizes 10000000 --folder DIR   # hours; a run that was stopped goes on
    python -m experiments.benchmarks.stream --team 100000              # two processes beside two threads, in memory

Made pairs of 50 words (10 and 40) of a vocabulary of 50,000 by Zipf's law, in shards of 50,000 rows. Each run is a
process of its own, one epoch of sentence_bert over random vectors with one negative a pair, so that reading and not the
network is what would show. `whole` has a window that holds the smallest size: the same command reads it into memory.
Sizes that were measured before stay in the results. "first_pass" are the seconds until the tokens are there; pairs a
second are those of an epoch, with the reading of its windows.
`--team` trains a CNN over the same pairs by two threads and, started by torchrun, by two processes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments import places
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write

WORDS, ASKED, VOCABULARY, SHARD = 50, 10, 50_000, 50_000
#: Runs the command and prints its peak memory in MB.
CHILD = (
    "import resource, sys; from matchloom.cli import main; code = main(sys.argv[1:]); "
    "print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024); sys.exit(code)"
)


def make(folder: Path, pairs: int) -> None:
    """Write the shards that are not there; a question shares three words with its answer."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    ends = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    names = np.array([f"w{n}" for n in range(VOCABULARY)])
    for start in range(0, pairs, SHARD):
        size = (min(SHARD, pairs - start), WORDS)
        words = names[np.minimum(np.searchsorted(ends, draw.random(size) * ends[-1]), VOCABULARY - 1)]
        words[:, :3] = words[:, ASKED : ASKED + 3]
        path = folder / f"part-{start // SHARD:05d}.parquet"
        if path.exists():
            continue
        texts = {"query": [" ".join(row[:ASKED]) for row in words], "text": [" ".join(row[ASKED:]) for row in words]}
        with atomic_write(path, "wb") as file:
            pq.write_table(pa.table(texts), file)


def run(shards: Path, out: Path, window: int) -> dict[str, Any]:
    """One training; its peak memory, its pairs a second in steps, and all of its seconds."""
    given = ["--vectors", "random", "--negatives", "1", "--epochs", "1", "--model", "sentence_bert", "--workers", "1"]
    command = ["train", str(shards), "--out", str(out), "--window", str(window), *given]
    command += ["--resume"] if (out / "checkpoint.json").exists() else []
    begun, load, before = time.time(), os.getloadavg()[0], children_seconds()
    done = subprocess.run([sys.executable, "-c", CHILD, *command], stdout=subprocess.PIPE, text=True, check=True)
    tokens = out / "tokens" / "tokens.json"
    log = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = sum(entry["seconds"] for entry in log)
    reading = sum(entry.get("seconds_of_reading", 0) for entry in log)
    trained = sum(entry["pairs_per_second"] * entry["seconds"] for entry in log)
    return {
        "peak_mb": round(float(done.stdout.rpartition("peak ")[2])),
        "pairs_per_second": round(trained / (steps + reading)),
        "seconds_of_steps": round(steps, 1),
        "seconds_of_reading": round(reading, 1),
        "seconds": round(time.time() - begun, 1),
        "cpu_seconds": round(children_seconds() - before, 1),
        "first_pass": round(max(0, tokens.stat().st_mtime - begun), 1) if tokens.exists() else 0,
        "load": round(load, 1),
        "commit": commit(),
        "windows": len(log),
        "tokens_mb": round(sum(file.stat().st_size for file in (out / "tokens").glob("*")) / 1e6),
    }


def team(shards: Path, home: Path, size: int) -> dict[str, Any]:
    """Two threads of one process and two processes: pairs a second in steps, and whether weights are the same bits."""
    given = ["--vectors", "random", "--negatives", "1", "--epochs", "1", "--model", "cnn_mlp", "--window", str(size)]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    ways = {"two threads": [sys.executable], "two processes": torchrun}
    rows: dict[str, Any] = {way: {"pairs_per_second": 0.0, "cpu_seconds": 0.0} for way in ways}
    weights = []
    for n, way in enumerate([*ways, *reversed(ways)]):  # each twice: what else the machine does touches both
        out, before = home / f"team-{n}", children_seconds()
        done = [*ways[way], "-m", "matchloom", "train", str(shards), "--out", str(out), *given, "--workers", "2"]
        subprocess.run(done, capture_output=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        log = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        rows[way]["pairs_per_second"] += round(log[0]["pairs_per_second"] / 2, 1)
        rows[way]["cpu_seconds"] += round((children_seconds() - before) / 2, 1)
        weights.append((out / "weights.safetensors").read_bytes())
    first, second = (row["pairs_per_second"] for row in rows.values())
    return {"pairs": size, **rows, "processes of threads": round(second / first, 2), "equal": len({*weights}) == 1}


def children_seconds() -> float:
    """Of a processor, by processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--window", type=int, default=50_000)
    parser.add_argument("--out", type=Path, default=places.RESULTS / "stream.json")
    parser.add_argument("--team", type=int, help="only two processes beside two threads, of so many pairs")
    parser.add_argument("--folder", type=Path, help="where shards and runs are kept; without, nothing is")
    options = parser.parse_args()
    kept = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    with nullcontext(options.folder) if options.folder else tempfile.TemporaryDirectory() as folder:
        if options.team:
            make(Path(folder) / "team", options.team)
            row = team(Path(folder) / "team", Path(folder), options.team)
            print(json.dumps(row))
            with atomic_write(options.out) as file:
                told = {"commit": commit(), "load": round(os.getloadavg()[0], 1), **row}
                file.write(json.dumps({**kept, "team": told}, indent=2) + "\n")
            return
        results: dict[str, Any] = {"rows": {}, **kept, "commit": commit(), "window": options.window}
        results["load"] = os.getloadavg()[0]
        for n, size in enumerate(options.sizes):
            make(Path(folder) / str(size), size)
            kinds = {"stream": options.window, **({"whole": size} if n == 0 else {})}
            for kind, window in kinds.items():
                row = run(Path(folder) / str(size), Path(folder) / f"{kind}-{size}", window)
                row["window"] = window
                print(size, kind, json.dumps(row), flush=True)
                results["rows"][f"{size} {kind}"] = row
                with atomic_write(options.out) as file:
                    file.write(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
