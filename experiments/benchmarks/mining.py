"""Mining in the loop: P@1 and RR@100 over a whole collection, trained with negatives of BM25 and of the matcher itself.

    python -m experiments.benchmarks.mining develop            # on development questions, to results/mining.json
    python -m experiments.benchmarks.mining test --seeds 3     # on test questions, with the settings of the package

InsuranceQA: training questions with all their answers against all 27,413 answers; 500 development questions choose the
epoch. cqa: pairs split by group 8:1:1 (seed 0), each question against all 20,000 and more answers. The network is
sentence_bert over word vectors: a cosine of means, whose scores of a whole collection are one product of matrices.
`develop` tries the filters against false negatives one by one and prints P@1 and RR@100 over the whole collection.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import matchloom
from experiments import places
from experiments.corpora.cqa import read_cqa
from experiments.corpora.insuranceqa import insuranceqa_answers, read_insuranceqa
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.data.identity import digest, normalize_text
from matchloom.data.splits import split_by_group
from matchloom.matcher import Matcher
from matchloom.training import mining
from matchloom.types import Pair

EPOCHS, DEVELOPMENT = 12, 500
SETTINGS: dict[str, Any] = {"loss": "softmax", "negatives": 8, "epochs": EPOCHS, "patience": EPOCHS}
#: What is tried on development questions: the interval, and a changed constant of matchloom.training.mining each.
TRIED: dict[str, tuple[int, dict[str, Any]]] = {
    "BM25 throughout": (0, {}),
    "every 3 epochs": (3, {}),
    "every 3, no filter": (3, {"COPY": 2.0, "MARGIN": 1.0}),
    "every 3, margin at the median": (3, {"MARGIN": 0.5}),
    "every 3, from rank 5": (3, {"LEAST_RANK": 5}),
    "every 3, the highest 20": (3, {"MINED": 20}),
}


@cache
def corpus(name: str) -> tuple[list[Pair], list[Pair], list[Pair], list[str]]:
    """Training, development and test pairs, and all texts that a question is ranked against."""
    if name == "insuranceqa":
        folder = places.DATA / "insuranceqa"
        train, valid, test = (read_insuranceqa(folder, part, gold="all") for part in ("train", "valid", "test"))
        return train, valid, test, list(insuranceqa_answers(folder).values())
    train, valid, test = split_by_group(read_cqa(places.DATA / "cqa" / "cqa_5_50.tsv.gz"), seed=0)
    return train, valid, test, sorted({pair.text for pair in (*train, *valid, *test)})


def some_questions(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """The pairs of so many questions, drawn by digest."""
    drawn = set(sorted({pair.query_id for pair in pairs}, key=digest)[:count])
    return [pair for pair in pairs if pair.query_id in drawn]


def whole_ranking(matcher: Matcher, pairs: Sequence[Pair], texts: Sequence[str]) -> dict[str, float]:
    """P@1 and RR@100 of questions that are ranked against all texts; equal scores count against the positive."""
    asked: dict[str, tuple[str, set[str]]] = {}
    for pair in pairs:
        asked.setdefault(pair.query_id, (pair.query, set()))[1].add(normalize_text(pair.text))
    rows = {normalize_text(text): n for n, text in enumerate(texts)}
    right = matcher.vectors(texts, side="right")
    first, reciprocal = [], []
    for query, own in asked.values():
        scores = matcher.match_vectors(matcher.vectors([query])[0], right)
        relevant = np.zeros(len(texts), dtype=bool)
        relevant[[rows[text] for text in own if text in rows]] = True
        best = scores[relevant].max()
        rank = 1 + int(((scores >= best) & ~relevant).sum())
        first.append(rank == 1)
        reciprocal.append(1 / rank if rank <= 100 else 0.0)
    return {"P@1": float(np.mean(first)), "RR@100": float(np.mean(reciprocal)), "questions": len(asked)}


@contextmanager
def constants(changed: dict[str, Any]) -> Iterator[None]:
    before = {name: getattr(mining, name) for name in changed}
    for name, value in changed.items():
        setattr(mining, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(mining, name, value)


def run(name: str, every: int, seed: int, *, test: bool, changed: dict[str, Any]) -> dict[str, Any]:
    """One training, and its figures over the whole collection."""
    train, valid, tested, texts = corpus(name)
    begun, cpu = time.perf_counter(), time.process_time()
    with constants(changed), tempfile.TemporaryDirectory() as folder:
        matcher = matchloom.train(
            train,
            some_questions(valid, DEVELOPMENT),
            model="sentence_bert",
            folder=Path(folder) / "run",
            dimensions=100,
            mine_every=every,
            seed=seed,
            **SETTINGS,
        )
    # The epoch was chosen on the first 500 development questions; others of that part tell of it.
    others = [p for p in valid if p.query_id not in {q.query_id for q in some_questions(valid, DEVELOPMENT)}]
    figures = whole_ranking(matcher, tested if test else some_questions(others, 1000), texts)
    return {
        **figures,
        "texts": len(texts),
        "epoch": matcher.training["best"]["epoch"],
        "seconds": round(time.perf_counter() - begun),
        "cpu_seconds": round(time.process_time() - cpu),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["develop", "test"])
    parser.add_argument("--corpora", nargs="+", default=["insuranceqa", "cqa"], choices=["insuranceqa", "cqa"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--every", type=int, default=3, help="for test: epochs between two minings")
    parser.add_argument("--out", type=Path, default=places.RESULTS / "mining.json")
    options = parser.parse_args()
    tried = TRIED if options.part == "develop" else {"before": (0, {}), "after": (options.every, {})}
    for name in options.corpora:
        for seed in range(options.seeds):
            for title, (every, changed) in tried.items():
                row = run(name, every, seed, test=options.part == "test", changed=changed)
                print(name, seed, title, json.dumps(row), flush=True)
                save(options.out, options.part, name, title, {"seed": seed, **row})


def save(path: Path, part: str, name: str, title: str, row: dict[str, Any]) -> None:
    """Put a row in its place; others stay."""
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    rows = results.setdefault(part, {}).setdefault(name, {}).setdefault(title, [])
    rows[:] = [*(other for other in rows if other["seed"] != row["seed"]), {**row, "commit": commit()}]
    with atomic_write(path) as file:
        file.write(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
