"""Does the matching path matter: delete the words that Match-SRNN's path matched, and as many others at random.

    python benchmarks/paper.py benchmarks/papers/qa.toml --only "Match-SRNN, vectors kept" --keep runs
    python benchmarks/deletion.py "runs/Match-SRNN, vectors kept, seed 0"

A path runs from one corner of the map to the other, so that nearly every word lies on it. What it matched are the
cells that it entered along the diagonal and at which the score rose; their text words are deleted. The mean drop of the
score over 500 right pairs of the cqa test lists goes to benchmarks/results/deletion.json.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from lists import TASKS
from matchloom.files import atomic_write
from matchloom.matcher import Matcher
from matchloom.progress import track
from matchloom.types import Pair, Signal
from provenance import commit

RESULTS = Path(__file__).parent / "results" / "deletion.json"
DRAWS = 10


def matched(signals: Sequence[Signal]) -> set[int]:
    """Text positions that the paths matched."""
    found = set()
    for channel in {signal.channel for signal in signals}:
        path = [signal for signal in signals if signal.channel == channel]
        for before, here in pairwise(path):
            if before.left != here.left and before.right != here.right and here.share > 0:
                found.add(here.right)
    return found


def without(words: list[str], gone: set[int]) -> str:
    return " ".join(word for n, word in enumerate(words) if n not in gone)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("matcher", type=Path, help="a Match-SRNN trained on the cqa lists")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of the data sets")
    parser.add_argument("--pairs", type=int, default=500)
    options = parser.parse_args()
    matcher = Matcher.load(options.matcher)
    right = [pair for pair in TASKS["cqa"](options.data, 0).test if pair.label]
    rng = random.Random(0)
    drops: dict[str, list[float]] = {"path": [], "random": [], "share of words deleted": []}
    for pair in track(rng.sample(right, len(right)), "deleting", total=options.pairs):
        if len(drops["path"]) == options.pairs:
            break
        _, words, trace = matcher.trace(pair.query, pair.text)
        gone = matched(trace.signals)
        if not gone or len(gone) == len(words):
            continue  # there is nothing to compare
        draws = [set(rng.sample(range(len(words)), len(gone))) for _ in range(DRAWS)]
        texts = [" ".join(words), without(words, gone), *(without(words, draw) for draw in draws)]
        whole, path, *others = matcher.score([Pair(pair.query, text) for text in texts]).tolist()
        drops["path"].append(whole - path)
        drops["random"].append(whole - mean(others))
        drops["share of words deleted"].append(len(gone) / len(words))
    differences = [a - b for a, b in zip(drops["path"], drops["random"], strict=True)]
    result: dict[str, Any] = {
        "matcher": options.matcher.name,
        "pairs": len(differences),
        "draws": DRAWS,
        **{name: mean(values) for name, values in drops.items()},
        "difference": mean(differences),
        "standard error": stdev(differences) / len(differences) ** 0.5,
        "pairs where the path matters more": mean(float(x > 0) for x in differences),
        "commit": commit(),
    }
    print(json.dumps(result, indent=1))
    with atomic_write(RESULTS) as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
