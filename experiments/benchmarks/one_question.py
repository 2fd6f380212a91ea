"""FAQs whose answers have one question each: questions asked again in other words, and answers found by text alone.

Run: python -m experiments.benchmarks.one_question [--out experiments/results/one_question.json]

Reworded: of CovidFAQ's entries and training questions (its test questions are not looked at) each answer keeps one
question, drawn by digests; the others are asked. Of InsuranceQA's training and valid questions those of answers that
have several, among 300 other answers. Text alone: FAQs of 60 and 150 pairs drawn from three corpora, in five folds, as
`fit` measures them: the questions of a fold are held out, and with them all that their answers have. `known` is the
ranker that compares with the questions of all other answers nevertheless. Every question is ranked against all answers.
The data are in the folder MATCHLOOM_DATA, or ../shared/data beside the project.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments import places
from experiments.corpora import read_cqa, read_insuranceqa
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.data.formats import read_pairs
from matchloom.data.identity import digest
from matchloom.data.pydocs import read_pydocs
from matchloom.data.splits import hold_out_questions
from matchloom.fitting.answers_task import AnswersTask
from matchloom.search.baselines import BASELINES
from matchloom.search.collection import Collection
from matchloom.search.entries import Entries
from matchloom.types import Pair, Scorer

DRAWS, FOLDS, SIZES, OTHERS = 3, 5, (60, 150), 300
Make = Callable[[Sequence[Pair]], Scorer]


def _baselines(*names: str) -> dict[str, Make]:
    return {name: lambda pairs, name=name: BASELINES[name](Entries.of(pairs)) for name in names}  # type: ignore[misc]


REWORDED: dict[str, Make] = {
    "answer_ranker": Collection.fit,
    **_baselines("linear_classifier", "nearest_question", "trans_lm", "bm25_stemmed"),
}
TEXT_ALONE: dict[str, Make] = {
    "answer_ranker": partial(Collection.fit, use_questions=False),
    "answer_ranker, known": Collection.fit,
    **_baselines("bm25_stemmed", "trans_lm"),
}


def _plain(pairs: Iterable[Pair]) -> list[Pair]:
    return [Pair(pair.query, pair.text) for pair in pairs]


def _one_each(pairs: Iterable[Pair], draw: int) -> tuple[list[Pair], list[Pair]]:
    """A pair of each answer, drawn by digests, and the others."""
    own: dict[str, dict[str, Pair]] = defaultdict(dict)
    for pair in pairs:
        own[pair.text][pair.query] = pair
    known, asked = [], []
    for questions in own.values():
        first, *others = sorted(questions.values(), key=lambda pair: digest(str(draw), pair.query))
        known.append(first)
        asked += others
    spent = {pair.query for pair in known}  # a question may have several answers
    return known, [pair for pair in asked if pair.query not in spent]


def covid(data: Path, draw: int) -> tuple[list[Pair], list[Pair]]:
    """One question each of CovidFAQ, and the others."""
    files = (data / "faq" / f"covid_{name}.tsv" for name in ("faq", "train"))
    return _one_each((pair for file in files for pair in _plain(read_pairs(file))), draw)


def insurance(data: Path, draw: int) -> tuple[list[Pair], list[Pair]]:
    """One question each of InsuranceQA's answers that have several, among answers that have one."""
    parts = (read_insuranceqa(data / "insuranceqa", part, gold="all") for part in ("train", "valid"))
    pairs = _plain(pair for part in parts for pair in part)
    known, asked = _one_each(pairs, draw)
    repeated = {pair.text for pair in asked}
    others = sorted((p for p in known if p.text not in repeated), key=lambda p: digest(str(draw), p.query))
    return [p for p in known if p.text in repeated] + others[:OTHERS], asked


CORPORA: dict[str, Callable[[Path], Iterable[Pair]]] = {
    "cqa": lambda data: read_cqa(data / "cqa" / "cqa_5_50.tsv.gz"),
    "insuranceqa": lambda data: read_insuranceqa(data / "insuranceqa", "train"),
    "pydocs": lambda data: read_pydocs(),
}


def folds(pairs: Sequence[Pair], size: int, draw: int) -> list[tuple[list[Pair], list[Pair]]]:
    """Training and held-out pairs of a small FAQ."""
    faq = sorted(pairs, key=lambda pair: digest(str(draw), pair.query, pair.text))[:size]
    return [hold_out_questions(faq, 1 / FOLDS, seed=draw, fold_number=n, keep_answers=True) for n in range(FOLDS)]


def measured(systems: dict[str, Make], parts: Sequence[tuple[list[Pair], list[Pair]]], name: str) -> dict[str, object]:
    """The mean figures of every system over all questions of these parts."""
    rows: dict[str, dict[str, float]] = {}
    for system, make in systems.items():
        found = [AnswersTask().measure_on(make(known), asked).each for known, asked in parts]
        each = {measure: np.concatenate([one[measure] for one in found]) for measure in AnswersTask.measures}
        rows[system] = {measure: round(float(values.mean()), 4) for measure, values in each.items()}
        told = " | ".join(f"{value:.3f}" for value in rows[system].values())
        print(f"| {name} | {system} | {told} |", flush=True)
    return {"questions": len(each["P@1"]), "systems": rows}


def print_means(result: dict[str, Any]) -> None:
    """The mean of each system over the small FAQs whose questions were held out."""
    parts = [part["systems"] for name, part in result.items() if name.startswith("text alone")]
    for system in TEXT_ALONE:
        told = " | ".join(f"{np.mean([part[system][one] for part in parts]):.3f}" for one in AnswersTask.measures)
        print(f"| text alone, mean of {len(parts)} | {system} | {told} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=places.RESULTS / "one_question.json")
    options = parser.parse_args()
    data = places.DATA
    result: dict[str, Any] = {"commit": commit(), "draws": DRAWS}
    print(f"| FAQ | system | {' | '.join(AnswersTask.measures)} |\n|---|---|---|---|---|")
    for name, drawn in (("covid", covid), ("insuranceqa", insurance)):
        parts = [drawn(data, draw) for draw in range(DRAWS)]
        result[f"reworded, {name}"] = measured(REWORDED, parts, f"reworded, {name}")
    for name, read in CORPORA.items():
        pairs = _plain(read(data))
        for size in SIZES:
            parts = [part for draw in range(DRAWS) for part in folds(pairs, size, draw)]
            result[f"text alone, {name}, {size}"] = measured(TEXT_ALONE, parts, f"text alone, {name}, {size}")
    print_means(result)
    with atomic_write(options.out) as file:
        file.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
