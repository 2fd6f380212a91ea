"""Late interaction over a pretrained encoder, untrained and fine-tuned on few questions, on three corpora.

    python -m benchmarks.fine_tuned --data ../shared/data wikiqa --questions 350 --seeds 0 1 2

trecqa       TRAIN (78 questions with both labels), clean DEV, clean TEST
wikiqa       the questions with both labels, of which --questions are drawn by their digests
insuranceqa  English, answers cut to 50 words; --questions of train with 30 wrong answers each from the BM25 top 1,000;
             the papers' lists of five to choose and test on

Settings are those of `matchloom train --encoder`. "Blind" is the AP of the same matcher when each list has another
list's query. Seconds are CPU seconds of training alone, memory the most that the process had, data included.
Figures are kept in benchmarks/results/fine_tuned.json, a row for each corpus and seed.
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

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.provenance import commit
from matchloom import Matcher, Pair, evaluate, train
from matchloom.data.corpora import insuranceqa_answers, read_insuranceqa, read_trecqa, read_wikiqa
from matchloom.data.corpora.subsets import both_labels
from matchloom.data.ids import digest
from matchloom.data.negatives import mine_negatives
from matchloom.files import atomic_write
from matchloom.reproduction.tasks import insurance_lists
from matchloom.text.tokenize import Tokenizer

RESULTS = Path(__file__).parent / "results" / "fine_tuned.json"
CORPORA = ("trecqa", "wikiqa", "insuranceqa")
MEASURES = ("AP", "RR", "P@1")
BLIND = ("queries shuffled", "random")
_WRONG = 30  # wrong answers of a training question of InsuranceQA


def main() -> None:
    """Measure what is asked for, and show all that was measured so far."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2")
    parser.add_argument("--questions", type=int, default=350, help="training questions at most")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0], help="none: only the untrained matcher")
    given = parser.parse_args()
    torch.set_num_threads(1)
    learnt, development, test = lists(given.corpus, given.data, given.questions)
    rows = {} if not RESULTS.exists() else json.loads(RESULTS.read_text())["rows"]
    untrained = f"{given.corpus}, untrained"
    if untrained not in rows:
        rows[untrained] = measured(Matcher.untrained(given.encoder), development, test)
        write(rows, given.encoder)
    for seed in given.seeds:
        start = time.process_time()
        matcher = train(learnt, development, encoder=given.encoder, seed=seed, workers=1)
        seconds = time.process_time() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        found = measured(matcher, development, test)
        asked = len({pair.query_id for pair in learnt})
        rows[f"{given.corpus}, {asked} questions, seed {seed}"] = {**found, "seconds": seconds, "megabytes": memory}
        write(rows, given.encoder)
    show(rows)


def lists(corpus: str, data: Path, questions: int) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Lists to learn from, to look at and to test on."""
    if corpus == "insuranceqa":
        folder, cut = data / "insuranceqa", Tokenizer(max_words=50)
        pool = list(insuranceqa_answers(folder, cut=cut).values())
        right = _some(list(read_insuranceqa(folder, "train", cut=cut)), questions)
        mined = mine_negatives(right, count=_WRONG, source="bm25", top=1000, seed=0, pool=pool)
        development, test = (insurance_lists(data, split, "en", 4, "bm25", pool) for split in ("valid", "test"))
        return list(mined), _some(development, questions), test
    if corpus == "trecqa":
        names = (f"{name}.tsv" for name in ("TRAIN", "DEV.clean", "TEST.clean"))
        parts = [list(both_labels(read_trecqa(data / "trecqa" / name))) for name in names]
    else:
        names = (f"WikiQASent-{name}.txt" for name in ("train", "dev", "test"))
        parts = [list(both_labels(read_wikiqa(data / "wikiqa" / name))) for name in names]
    return _some(parts[0], questions), parts[1], parts[2]


def _some(pairs: list[Pair], questions: int) -> list[Pair]:
    """Those of so many questions, drawn by their digests."""
    kept = set(sorted({pair.query_id for pair in pairs}, key=digest)[:questions])
    return [pair for pair in pairs if pair.query_id in kept]


def measured(matcher: Matcher, development: Sequence[Pair], test: Sequence[Pair]) -> dict[str, Any]:
    """Figures on both, and of blind probes on test."""
    of_test = evaluate(matcher, test, measures=MEASURES)
    of_development = evaluate(matcher, development, measures=MEASURES, baselines=False)
    found = {one.name: one.measured.values["AP"] for one in of_test.baselines}
    found |= {one.name: one.measured.values["AP"] for one in of_test.probes}
    blind = {name: found[name] for name in BLIND if name in found}
    return {
        "commit": commit(),
        "development": dict(of_development.values),
        "test": dict(of_test.values),
        "AP of blind": blind,
    }


def write(rows: dict[str, Any], encoder: str) -> None:
    """Keep all figures."""
    about = {"encoder": encoder, "torch": torch.__version__, "python": platform.python_version(), "rows": rows}
    with atomic_write(RESULTS) as file:
        file.write(json.dumps(about, indent=1) + "\n")


def show(rows: dict[str, Any]) -> None:
    """A line for each matcher."""
    table = Table("", *(f"dev {name}" for name in MEASURES), *MEASURES, "blind", "random", "CPU s", "MB")
    for name, row in sorted(rows.items()):
        figures = [row[part][measure] for part in ("development", "test") for measure in MEASURES]
        blind = [row["AP of blind"].get(probe) for probe in BLIND]
        told = ["" if value is None else f"{value:.4f}" for value in (*figures, *blind)]
        table.add_row(name, *told, f"{row.get('seconds', 0):.0f}", str(row.get("megabytes", "")))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
