"""How many questions an FAQ needs: systems that learn from 50, 100, 200, 400 and all training questions of CovidFAQ.

Run: python -m experiments.benchmarks.faq [--sizes 50,100,200,400] [--draws 3] [--out experiments/results/faq.json]

Every test question is ranked against all 67 answers, whichever questions were drawn. Draws go by digests of a seed and
the question. Nothing is chosen here: every system is as `matchloom fit` makes it, those with a pretrained encoder where
one is found. The data are in the folder MATCHLOOM_DATA, or ../shared/data beside the project.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from experiments import places
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.data.formats import read_pairs
from matchloom.data.identity import digest, normalize_text, questions_of
from matchloom.fitting.answers_task import AnswersTask
from matchloom.fitting.encoder import AUTO, encoder_for
from matchloom.matcher import Matcher
from matchloom.search.baselines import BASELINES
from matchloom.search.collection import Collection
from matchloom.search.entries import Entries
from matchloom.search.features.dense import SentenceVectors
from matchloom.types import Pair, Scorer

SYSTEMS: dict[str, Callable[[Sequence[Pair]], Scorer]] = {
    **{name: lambda pairs, name=name: BASELINES[name](Entries.of(pairs)) for name in BASELINES},  # type: ignore[misc]
    "answer_ranker": Collection.fit,
}


def with_encoder() -> dict[str, Callable[[Sequence[Pair]], Scorer]]:
    """The systems with the encoder that `fit` would take, if there is one; all draws share its vectors."""
    found = encoder_for(AUTO, print)
    if found is None:
        return {}
    sentences = SentenceVectors(Matcher.untrained(found.folder, model="sentence_bert"))
    return {
        "encoder_nearest": lambda pairs: Collection.fit(pairs, sentences=sentences, words=False),
        "encoder_ranker": lambda pairs: Collection.fit(pairs, sentences=sentences, tune=True),
    }


def drawn(pairs: Sequence[Pair], size: int, seed: int) -> list[Pair]:
    """So many of the questions with their answers, and all other answers without a question."""
    order = sorted(questions_of(pairs), key=lambda question: digest(str(seed), normalize_text(question)))
    kept = {normalize_text(question) for question in order[:size]}
    return [pair if normalize_text(pair.query) in kept else pair._replace(query="", query_id="") for pair in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="50,100,200,400")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--out", type=Path, default=places.RESULTS / "faq.json")
    options = parser.parse_args()
    folder = places.DATA / "faq"
    train = [pair for name in ("faq", "train") for pair in read_pairs(folder / f"covid_{name}.tsv")]
    test = list(read_pairs(folder / "covid_test.tsv"))
    whole, started = len(questions_of(train)), time.perf_counter()
    rows = []
    systems = {**SYSTEMS, **with_encoder()}
    print("| questions | system | P@1 | R@3 | RR | seconds |\n|---|---|---|---|---|---|")
    for size in [*(int(size) for size in options.sizes.split(",")), whole]:
        for name, make in systems.items():
            found, seconds = [], []
            for seed in range(1 if size == whole else options.draws):
                begun = time.perf_counter()
                scorer = make(drawn(train, size, seed))
                seconds.append(time.perf_counter() - begun)
                found.append(AnswersTask().measure_on(scorer, test).values)
            each = {measure: [round(values[measure], 4) for values in found] for measure in AnswersTask.measures}
            rows.append({"questions": size, "system": name, **each, "seconds": round(float(np.mean(seconds)), 2)})
            told = " | ".join(f"{np.mean(values):.3f} ±{np.std(values):.3f}" for values in each.values())
            print(f"| {size} | {name} | {told} | {np.mean(seconds):.1f} |", flush=True)
    result = {
        "commit": commit(),
        "tested": len(questions_of(test)),
        "rows": rows,
        "seconds": round(time.perf_counter() - started, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),  # Linux counts in KiB
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(options.out) as file:
        file.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
