"""Late interaction over a pretrained encoder, untrained and fine-tuned on few questions, on three corpora.

    python -m experiments.benchmarks.fine_tuned --data ../shared/data wikiqa --seeds 0 1 2

trecqa       TRAIN (78 questions with both labels) and, where --questions are more, others of TRAIN-ALL drawn by their
             digests; clean DEV, clean TEST
wikiqa       the questions with both labels, of which --questions are drawn by their digests
insuranceqa  English, answers cut to 50 words; --questions of train with 30 negatives each from the BM25 top 1,000;
             the papers' lists of five to choose and test on; with --whole also 300 test questions, drawn by their
             digests, against their own 200 negatives and against all 27,413

Settings are those of `matchloom train --encoder`, but for what --settings changes (layers=3, in_batch=true). "Blind" is
the AP of the same matcher when each list has another list's query. Seconds are CPU seconds of training alone, memory
the most that the process had, data included. Blind figures of InsuranceQA are of the same 300 questions. Figures are
kept in experiments/results/fine_tuned.json, a row for each corpus and seed.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from experiments import places
from experiments.corpora import insuranceqa_answers, insuranceqa_lists, read_insuranceqa, read_trecqa, read_wikiqa
from experiments.corpora.subsets import both_labels
from experiments.reproduction.provenance import commit
from experiments.reproduction.tasks import insurance_lists
from matchloom import Matcher, Pair, evaluate, train
from matchloom.basics.files import atomic_write
from matchloom.basics.progress import track
from matchloom.data.identity import digest
from matchloom.data.negatives import mine_negatives
from matchloom.lexical import fit_scorer
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Scores

RESULTS = places.RESULTS / "fine_tuned.json"
QUESTIONS = {"trecqa": 250, "wikiqa": 350, "insuranceqa": 250}  # as many as five minutes of one core allow
MEASURES = ("AP", "RR", "P@1")
BLIND = ("queries shuffled", "random")
PROBED = 300  # questions of InsuranceQA for what takes long
_WRONG = 30  # negatives of a training question of InsuranceQA
_AT_ONCE = 20  # questions, so that all answers are not tokenized for each


def main() -> None:
    """Measure what is asked for, and show all that was measured so far."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=QUESTIONS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2")
    parser.add_argument("--questions", type=int, help=f"training questions at most; by default {QUESTIONS}")
    parser.add_argument("--whole", action="store_true", help="InsuranceQA: rank against the pools and all answers, too")
    parser.add_argument("--settings", nargs="*", default=[], metavar="NAME=VALUE", help="of the training")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0], help="none: only the untrained matcher")
    given = parser.parse_args()
    torch.set_num_threads(1)
    learnt, development, test = lists(given.corpus, given.data, given.questions or QUESTIONS[given.corpus])
    rows = {} if not RESULTS.exists() else json.loads(RESULTS.read_text())["rows"]
    untrained = f"{given.corpus}, untrained"
    if untrained not in rows:
        matcher = Matcher.untrained(given.encoder)
        rows[untrained] = measured(matcher, development, test)
        write(rows, given.encoder)
    if given.whole and given.corpus == "insuranceqa" and "whole" not in rows[untrained]:
        rows[untrained]["whole"] = against_the_whole(Matcher.untrained(given.encoder), given.data)
        write(rows, given.encoder)
        rows["insuranceqa, bm25_stemmed"] = {"commit": commit(), "whole": against_the_whole("bm25_stemmed", given.data)}
        write(rows, given.encoder)
    settings = {name: json.loads(value) for name, _, value in (one.partition("=") for one in given.settings)}
    for seed in given.seeds:
        start = time.process_time()
        matcher = train(learnt, development, encoder=given.encoder, seed=seed, workers=1, **settings)
        seconds = time.process_time() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        found = measured(matcher, development, test)
        asked = len({pair.query_id for pair in learnt})
        name = ", ".join([given.corpus, f"{asked} questions", *given.settings, f"seed {seed}"])
        rows[name] = {**found, "seconds": seconds, "megabytes": memory}
        write(rows, given.encoder)
        if given.whole and given.corpus == "insuranceqa":
            rows[name]["whole"] = against_the_whole(matcher, given.data)
            write(rows, given.encoder)
    show(rows)


def lists(corpus: str, data: Path, questions: int) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Lists to learn from, to look at and to test on."""
    if corpus == "insuranceqa":
        folder, tokenizer = data / "insuranceqa", Tokenizer(max_words=50)
        pool = list(insuranceqa_answers(folder, truncate=tokenizer).values())
        right = _some(list(read_insuranceqa(folder, "train", truncate=tokenizer)), questions)
        mined = mine_negatives(right, count=_WRONG, source="bm25", top=1000, seed=0, pool=pool)
        development, test = (insurance_lists(data, split, "en", 4, "bm25", pool) for split in ("valid", "test"))
        return list(mined), _some(development, questions), test
    if corpus == "trecqa":
        names = (f"{name}.tsv" for name in ("TRAIN", "DEV.clean", "TEST.clean"))
        parts = [list(both_labels(read_trecqa(data / "trecqa" / name))) for name in names]
        known = {pair.query for part in parts for pair in part}
        judged = {pair.query_id for pair in parts[0]}
        more = [pair for pair in both_labels(read_trecqa(data / "trecqa" / "TRAIN-ALL.tsv")) if pair.query not in known]
        drawn = _some(
            [pair._replace(query_id=f"all {pair.query_id}") for pair in more], max(0, questions - len(judged))
        )
        return [*_some(parts[0], questions), *drawn], parts[1], parts[2]
    names = (f"WikiQASent-{name}.txt" for name in ("train", "dev", "test"))
    parts = [list(both_labels(read_wikiqa(data / "wikiqa" / name))) for name in names]
    return _some(parts[0], questions), parts[1], parts[2]


def _some(pairs: Sequence[Pair], questions: int) -> list[Pair]:
    """Those of so many questions, drawn by their digests."""
    kept = set(sorted({pair.query_id for pair in pairs}, key=digest)[:questions])
    return [pair for pair in pairs if pair.query_id in kept]


def measured(matcher: Matcher, development: Sequence[Pair], test: Sequence[Pair]) -> dict[str, Any]:
    """Figures on both, and of blind probes on test."""
    probed = _some(test, PROBED)
    of_test = evaluate(matcher, test, measures=MEASURES, baselines=len(probed) == len(test))
    blind_of = of_test if len(probed) == len(test) else evaluate(matcher, probed, measures=MEASURES)
    of_development = evaluate(matcher, development, measures=MEASURES, baselines=False)
    found = {one.name: one.measured.values["AP"] for one in blind_of.baselines}
    found |= {one.name: one.measured.values["AP"] for one in blind_of.probes}
    blind = {name: found[name] for name in BLIND if name in found}
    return {
        "commit": commit(),
        "development": dict(of_development.values),
        "test": dict(of_test.values),
        "AP of blind": blind,
    }


def against_the_whole(scorer: Matcher | str, data: Path) -> dict[str, Any]:
    """P@1 and RR of 300 test questions among their own 200 negatives, and among all.

    The rank of the best right one; another id with the same text has the same score and does not push it down.
    """
    folder, tokenizer = data / "insuranceqa", Tokenizer(max_words=50)
    ids, texts = zip(*sorted(insuranceqa_answers(folder, truncate=tokenizer).items()), strict=True)
    place = {one: n for n, one in enumerate(ids)}
    lists: dict[str, list[Pair]] = {}
    for pair in _some(list(insuranceqa_lists(folder, "test", truncate=tokenizer)), PROBED):
        lists.setdefault(pair.query_id, []).append(pair)
    encoded = scorer.encode(list(texts), progress=True) if isinstance(scorer, Matcher) else None
    words = None if isinstance(scorer, Matcher) else fit_scorer(scorer, list(texts), tokenizer=Tokenizer())
    first: dict[str, list[float]] = {"pool": [], "all": []}
    asked = list(lists.values())
    by_words: list[Scores] = []
    for n, own in enumerate(track(asked, "ranking")):
        if encoded is not None:
            assert isinstance(scorer, Matcher)
            scores = scorer.query_scores(own[0].query, encoded)
        else:
            assert words is not None
            if n % _AT_ONCE == 0:
                some = [Pair(one[0].query, text) for one in asked[n : n + _AT_ONCE] for text in texts]
                by_words = list(words.score(some).reshape(-1, len(texts)))
            scores = by_words[n % _AT_ONCE]
        right = [place[pair.text_id] for pair in own if pair.label]
        pool = [place[pair.text_id] for pair in own]
        for name, against in (("pool", scores[pool]), ("all", scores)):
            first[name].append(float((against > scores[right].max()).sum() + 1))
    return {
        f"{measure}, {name}": float(np.mean([at(rank) for rank in ranks]))
        for name, ranks in first.items()
        for measure, at in (("P@1", lambda rank: float(rank == 1)), ("RR", lambda rank: 1 / rank))
    }


def write(rows: dict[str, Any], encoder: str) -> None:
    """Keep all figures."""
    about = {"encoder": encoder, "torch": torch.__version__, "python": platform.python_version(), "rows": rows}
    with atomic_write(RESULTS) as file:
        file.write(json.dumps(about, indent=1) + "\n")


def show(rows: dict[str, Any]) -> None:
    """A line for each matcher."""
    table = Table("", *(f"dev {name}" for name in MEASURES), *MEASURES, "blind", "random", "CPU s", "MB")
    whole = Table("", "P@1, pool", "RR, pool", "P@1, all", "RR, all", title="InsuranceQA, 300 test questions")
    for name, row in sorted(rows.items()):
        if "whole" in row:
            whole.add_row(name, *(f"{row['whole'][column.header]:.3f}" for column in whole.columns[1:]))
        if "test" not in row:
            continue
        figures = [row[part][measure] for part in ("development", "test") for measure in MEASURES]
        blind = [row["AP of blind"].get(probe) for probe in BLIND]
        told = ["" if value is None else f"{value:.4f}" for value in (*figures, *blind)]
        table.add_row(name, *told, f"{row.get('seconds', 0):.0f}", str(row.get("megabytes", "")))
    Console(width=160).print(table, whole)


if __name__ == "__main__":
    main()
