"""Does the matching path matter: delete the words at which the score rose on Match-SRNN's path, and others at random.

    matchloom reproduce qa --data ../shared/data --only "Match-SRNN, vectors kept" --seeds 0 --out runs --keep
    python -m experiments.benchmarks.deletion "runs/qa/Match-SRNN, vectors kept, seed 0"

A path runs from one corner of the map to the other, so that most words of the text lie on it. Those are deleted at
whose cells the running score rose most, three of them, and as many drawn from all words of the text (ten draws). The
mean drop of the score over 500 positive pairs of the cqa test lists goes to experiments/results/deletion.json.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from experiments import places
from experiments.reproduction.provenance import commit
from experiments.reproduction.tasks import TASKS
from matchloom.basics.files import atomic_write
from matchloom.basics.progress import track
from matchloom.matcher import Matcher
from matchloom.types import Pair, Signal

RESULTS = places.RESULTS / "deletion.json"
WORDS, DRAWS = 3, 10


def risen(signals: Sequence[Signal], count: int) -> set[int]:
    """The text positions at which the score rose most along the paths, at most so many."""
    contributions: dict[int, float] = {}
    for signal in signals:
        contributions[signal.right] = contributions.get(signal.right, 0.0) + signal.contribution
    best = sorted(contributions, key=lambda place: (-contributions[place], place))[:count]
    return {place for place in best if contributions[place] > 0}


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
    drops: dict[str, list[float]] = {"path": [], "random": [], "contribution of words deleted": []}
    for pair in track(rng.sample(right, len(right)), "deleting", total=options.pairs):
        if len(drops["path"]) == options.pairs:
            break
        _, words, trace = matcher.trace(pair.query, pair.text)
        gone = risen(trace.signals, WORDS)
        if not gone or len(gone) == len(words):
            continue  # there is nothing to compare
        draws = [set(rng.sample(range(len(words)), len(gone))) for _ in range(DRAWS)]
        texts = [" ".join(words), without(words, gone), *(without(words, draw) for draw in draws)]
        whole, path, *others = matcher.score([Pair(pair.query, text) for text in texts]).tolist()
        drops["path"].append(whole - path)
        drops["random"].append(whole - mean(others))
        drops["contribution of words deleted"].append(len(gone) / len(words))
    differences = [a - b for a, b in zip(drops["path"], drops["random"], strict=True)]
    result: dict[str, Any] = {
        "matcher": options.matcher.name,
        "pairs": len(differences),
        "words": WORDS,
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
