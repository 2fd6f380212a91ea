"""How long mining takes at the papers' size: 60,000 questions against 60,000 answers, 4 drawn from the BM25 top 1,000.

Run: python -m experiments.benchmarks.negatives [--texts zipf|real] [--size 60000] [--out FILE]

`zipf` makes texts of 5 to 50 words whose frequencies follow Zipf's law, so that anyone can repeat it; `real` takes
questions and answers of the real data sets (the folder MATCHLOOM_DATA, or ../shared/data beside the project).
The bar: at most 180 seconds and 2 GB on two cores. The result is added to the JSON file under the kind of texts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import resource
import time
from pathlib import Path

import numpy as np

from experiments import places
from matchloom.basics.files import atomic_write
from matchloom.data.formats import read_pairs
from matchloom.data.negatives import mine_negatives
from matchloom.types import Pair

VOCABULARY = 50_000


def zipf_pairs(size: int) -> list[Pair]:
    draw = np.random.default_rng(0)
    share = 1 / np.arange(1, VOCABULARY + 1)
    lengths = draw.integers(5, 51, size=2 * size)
    words = iter(draw.choice(VOCABULARY, size=int(lengths.sum()), p=share / share.sum()).tolist())
    texts = [" ".join(f"w{next(words)}" for _ in range(length)) for length in lengths]
    return [Pair(texts[i], texts[size + i], 1.0, f"q{i}", f"t{i}") for i in range(size)]


def real_pairs(size: int) -> list[Pair]:
    folder = places.DATA
    cqa = list(read_pairs(folder / "cqa" / "cqa_5_50.tsv.gz"))
    with gzip.open(folder / "insuranceqa" / "answers.en.tsv.gz", "rt", encoding="utf-8") as lines:
        insurance = [" ".join(line.rstrip("\n").split("\t", 1)[1].split()[:50]) for line in lines]
    texts = list(dict.fromkeys([*(p.text for p in cqa), *insurance, *(p.query for p in cqa)]))[:size]
    return [Pair(f"question {i}", text, 1.0, f"q{i}", f"t{i}") for i, text in enumerate(texts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", choices=["zipf", "real"], default="zipf")
    parser.add_argument("--size", type=int, default=60_000)
    parser.add_argument("--out", type=Path, default=places.RESULTS / "negatives.json")
    options = parser.parse_args()

    pairs = (zipf_pairs if options.texts == "zipf" else real_pairs)(options.size)
    words = float(np.mean([len(pair.text.split()) for pair in pairs]))
    load = os.getloadavg()[0]
    wall, cpu = time.perf_counter(), time.process_time()
    mined = sum(1 for _ in mine_negatives(pairs, count=4, top=1000, seed=0, progress=True))
    result = {
        "questions": len(pairs),
        "texts": len({pair.text for pair in pairs}),
        "mean_words": round(words, 1),
        "pairs_mined": mined,
        "seconds": round(time.perf_counter() - wall, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),  # Linux counts in KiB
        "load_at_start": round(load, 1),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    print(json.dumps(result, indent=2))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    with atomic_write(options.out) as file:
        file.write(json.dumps({**results, options.texts: result}, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
