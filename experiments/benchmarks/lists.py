"""What `fit` makes of judged lists, with other trainings of its network: new splits of what is not a test set.

Run: python -m experiments.benchmarks.lists [--corpora wikiqa,trecqa,semeval,cqa,insuranceqa] [--splits 2] [--out FILE]

Each split is one that `fit` would make (70:15:15 by question), of the training and development questions of a corpus;
no official test question is looked at. For each training of MV-LSTM: the network alone and fused with words and KNRM,
as `fit` mixes them, measured on the questions that the split holds out. Word vectors are skip-gram of the training
texts, as a user without any has them. The data are in the folder MATCHLOOM_DATA, or ../shared/data beside the project.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean
from typing import Any

from experiments import places
from experiments.corpora import read_cqa, read_insuranceqa, read_semeval, read_trecqa, read_wikiqa
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.data.identity import digest
from matchloom.data.kinds import both_labels
from matchloom.data.negatives import mine_negatives
from matchloom.fitting.list_fusion import ListFusion
from matchloom.fitting.lists_task import NETWORKS, WORDS, ListsTask
from matchloom.fitting.run import tokenizer_for
from matchloom.fitting.trained import own_vectors, train_within
from matchloom.fitting.word_scorers import WordScorer
from matchloom.matcher import Matcher
from matchloom.models import Argument
from matchloom.types import Pair, Scorer

QUESTIONS = 1000  # of a corpus whose lists are drawn
SECONDS = 600.0
#: Arguments of MV-LSTM and settings of its training beside those that `fit` has; the last is what it takes.
TRAININGS: dict[str, tuple[Mapping[str, Argument], Mapping[str, Any]]] = {
    "hinge": ({}, {"loss": "hinge"}),
    "softmax": ({}, {"loss": "softmax"}),
    "softmax, ensemble of five": ({"ensemble_size": 5}, {"loss": "softmax"}),
}


def _drawn(pairs: list[Pair]) -> list[Pair]:
    """Lists of five, four near ones and the right one, of some questions with one right answer each."""
    kept = sorted(pairs, key=lambda pair: digest("lists", pair.query))[:QUESTIONS]
    return list(mine_negatives([pair._replace(group="") for pair in kept], count=4, top=200, seed=0))


def wikiqa(data: Path) -> list[Pair]:
    """WikiQA's training and development questions."""
    parts = {
        part: read_wikiqa(data / "wikiqa" / f"WikiQASent-{part}.txt") for part in ("train", "dev")
    }  # the two number their questions alike
    return [pair._replace(query_id=f"{part} {pair.query_id}") for part, pairs in parts.items() for pair in pairs]


def trecqa(data: Path) -> list[Pair]:
    """The questions of TREC-QA that people judged, but for those of TEST."""
    return [pair for part in ("TRAIN", "DEV") for pair in read_trecqa(data / "trecqa" / f"{part}.tsv")]


def semeval(data: Path) -> list[Pair]:
    """SemEval 3B's training questions."""
    files = ("part1_fromcsv", "part2")
    return [p for part in files for p in read_semeval(data / "semeval-cqa" / f"subtaskB_train_{part}.jsonl")]


def cqa(data: Path) -> list[Pair]:
    """A thousand product and health questions with lists by the papers' protocol."""
    return _drawn(list(read_cqa(data / "cqa" / "cqa_5_50.tsv.gz")))


def insuranceqa(data: Path) -> list[Pair]:
    """A thousand training questions about insurance, likewise."""
    return _drawn(list(read_insuranceqa(data / "insuranceqa", "train")))


CORPORA: dict[str, Callable[[Path], list[Pair]]] = {
    "wikiqa": wikiqa,
    "trecqa": trecqa,
    "semeval": semeval,
    "cqa": cqa,
    "insuranceqa": insuranceqa,
}


def measured(pairs: list[Pair], seed: int) -> dict[str, dict[str, float]]:
    """The figures of every system on one split."""
    task, tokenize = ListsTask(), tokenizer_for(pairs)
    data = task.split(pairs, seed)
    found: dict[str, dict[str, float]] = {}

    def tell(name: str, scorer: Scorer, seconds: float) -> None:
        found[name] = {**task.measure_on(scorer, data.test).values, "seconds": round(seconds, 1)}
        told = " | ".join(f"{found[name][measure]:.3f}" for measure in task.measures)
        print(f"|  | {seed} | {name} | {told} | {seconds:.0f} |", flush=True)

    texts = sorted({pair.text for pair in data.train})
    for name in WORDS:
        tell(name, WordScorer.fit(name, texts, tokenize), 0.0)
    vectors = own_vectors(data.train, tokenize, SECONDS, seed)

    def network(model: str, arguments: Mapping[str, Argument], settings: Mapping[str, Any]) -> Matcher:
        _, own_arguments, own_settings = NETWORKS[model]
        with tempfile.TemporaryDirectory() as folder:
            return train_within(
                SECONDS,
                data.train,
                both_labels(data.development),
                Path(folder),
                model=model,
                arguments={**own_arguments, **arguments},
                settings={**own_settings, **settings, "seed": seed, "measure": task.measure},
                tokenizer=tokenize,
                vectors=vectors,
            )

    begun = time.perf_counter()
    knrm = network("knrm", {}, {})
    tell("knrm", knrm, time.perf_counter() - begun)
    words = [WordScorer.fit(name, texts, tokenize) for name in ("normalized_bm25", "overlap")]
    for name, (arguments, settings) in TRAININGS.items():
        begun = time.perf_counter()
        matcher = network("mv_lstm", arguments, settings)
        seconds = time.perf_counter() - begun
        tell(name, matcher, seconds)
        tell(f"fusion with {name}", ListFusion.fit([*words, knrm, matcher], data.development, tokenize), seconds)
    return found


def print_means(result: Mapping[str, Any]) -> None:
    """The mean over corpora of the mean over their splits, for systems that every split has."""
    corpora = [[split["systems"] for split in corpus["splits"]] for corpus in result.values()]
    for system in corpora[0][0]:
        if all(system in split for splits in corpora for split in splits):
            each = (
                mean(mean(split[system][one] for split in splits) for splits in corpora) for one in ListsTask.measures
            )
            print(
                f"| mean of {len(corpora)} corpora |  | {system} | {' | '.join(f'{value:.4f}' for value in each)} |  |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--out", type=Path, default=places.RESULTS / "lists.json")
    options = parser.parse_args()
    data = places.DATA
    print("| corpus | split | system | RR | AP | P@1 | seconds |\n|---|---|---|---|---|---|---|")
    for corpus in options.corpora.split(","):
        pairs = CORPORA[corpus](data)
        print(f"| {corpus} |  |  |  |  |  |  |", flush=True)
        rows = [{"split": seed, "systems": measured(pairs, seed)} for seed in range(options.splits)]
        kept = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
        result = {**kept, corpus: {"commit": commit(), "splits": rows}}
        with atomic_write(options.out) as file:
            file.write(json.dumps(result, indent=1) + "\n")
    print_means(result)


if __name__ == "__main__":
    main()
