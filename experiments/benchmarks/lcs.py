"""Match-SRNN and the longest common subsequence, three seeds, about a minute each.

Run: python -m experiments.benchmarks.lcs

Trained on 10,000 pairs of strings of up to 10 letters; compared with the dynamic programme on 1,000 new pairs of up to
10, 20, 30 and 50 letters. `matchloom reproduce lcs` does the same once, and draws. Results go to
experiments/results/lcs.json.
"""

from __future__ import annotations

import json

from experiments import places
from experiments.reproduction.lcs import check, train_lcs
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write

RESULTS = places.RESULTS / "lcs.json"
SEEDS, LENGTHS = (0, 1, 2), (10, 20, 30, 50)


def main() -> None:
    rows = []
    for seed in SEEDS:
        network = train_lcs(seed=seed, progress=True)
        for longest in LENGTHS:
            found = check(network, longest=longest, seed=seed)
            rows.append({"seed": seed, **found._asdict()})
            print(json.dumps(rows[-1]), flush=True)
    with atomic_write(RESULTS) as file:
        json.dump({"commit": commit(), "rows": rows}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
