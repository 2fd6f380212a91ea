"""CNTN's Experiment II beyond single systems: the fusion of Eq. 4, its Figure 3, and search in a whole archive.

    matchloom reproduce cntn_semeval --data ../shared/data --out runs --keep
    python -m experiments.benchmarks.retrieval runs/cntn_semeval --data ../shared/data   # to results/retrieval.json
    python -m experiments.benchmarks.page                                                # Figure 3, to docs/figures

The paper ranks archived pairs (q, a) for a new question t by alpha * v_t . v_q + (1 - alpha) * s(t, a). SemEval's 3B
files hold forum questions without answers, so s reads the forum question in the answer's place: s(t, q). Any scorer can
take the place of either part, as in `LanceCollection`; BM25 as a part is its share (see lexical/bm25.py).

alpha is the point of a grid of 0.05 with the highest mean average precision over all 267 training questions, each
scored by a system that was trained without it. Two settings are measured on dev with that alpha: the ten candidates of
each question, and all different forum questions of dev together, where what was not judged counts as wrong.
"""

from __future__ import annotations

import argparse
import json
import platform
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from experiments import places
from experiments.reproduction.provenance import commit
from experiments.reproduction.results import run_name
from experiments.reproduction.tables import read_table
from experiments.reproduction.tasks import TASKS, PaperTask
from matchloom import Matcher
from matchloom.basics.files import atomic_write
from matchloom.comparison import System, make_scorer
from matchloom.data.tokenized import deduplicate
from matchloom.evaluation.measures import CandidateLists, Measured, whole_label
from matchloom.lexical import BM25
from matchloom.models import MODELS
from matchloom.search.lance.table import unit
from matchloom.search.tuning import GRID, best_alpha
from matchloom.types import Pair

RESULTS = places.RESULTS / "retrieval.json"
VECTORS = "vectors of "
UNTRAINED = ("bm25", "bm25_stemmed", "soft_coverage")  # the same for every seed
SETTINGS = {"lists": ("AP", "RR", "P@1", "P@5", "P@10"), "archive": ("AP@100", "P@1", "P@10")}

Scores = NDArray[np.float32]
FusionScores = dict[str, Scores]  # by name, one score for each pair


def part_scores(name: str, model: str, task: PaperTask, seed: int, kept: Path, pairs: list[Pair]) -> Scores:
    """One part of the fusion for each pair."""
    if model not in MODELS:
        fitted = make_scorer(
            System(name, model),
            task.train,
            tokenizer=task.tokenizer,
            vectors=task.vectors,
            collection=task.collection,
            seed=seed,
        )
        if isinstance(fitted, BM25):
            fitted.normalize = True
        return fitted.score(pairs)
    matcher = load(kept / run_name(name.removeprefix(VECTORS), seed))
    questions, rows = deduplicate([pair.query for pair in pairs])
    texts, columns = deduplicate([pair.text for pair in pairs])
    if name.startswith(VECTORS):  # both are questions
        grid = unit(matcher.vectors(questions)) @ unit(matcher.vectors(texts)).T
    else:
        encoded = matcher.encode(texts)
        grid = np.stack([matcher.query_scores(question, encoded) for question in questions])
    return np.asarray(grid[rows, columns], np.float32)


@cache
def load(folder: Path) -> Matcher:
    """A matcher, read once."""
    return Matcher.load(folder)


def mixed(parts: FusionScores, row: dict[str, Any], alpha: float) -> Scores:
    """The scores of a row of the table."""
    if "second" not in row:
        return parts[row["first"]]
    return np.asarray(alpha * parts[row["first"]] + (1 - alpha) * parts[row["second"]], np.float32)


def archive_of(pairs: list[Pair]) -> list[Pair]:
    """Every question with every different text; a label is None where nobody judged."""
    judged: dict[tuple[str, str], float] = {}
    for pair in pairs:
        key = (pair.query_id, pair.text)
        judged[key] = max(judged.get(key, 0.0), pair.label or 0.0)
    questions = {pair.query_id: pair.query for pair in pairs}
    texts = sorted({pair.text for pair in pairs})
    return [
        Pair(query, text, judged.get((query_id, text)), query_id, f"text {n}")
        for query_id, query in questions.items()
        for n, text in enumerate(texts)
    ]


def tuned(row: dict[str, Any], parts: list[FusionScores], lists: list[CandidateLists]) -> dict[str, Any]:
    """The row with its mean average precision over all training questions, and alpha where it is a fusion."""

    def map_at(alpha: float) -> float:
        held_out = [fifth.measure(mixed(part, row, alpha)) for part, fifth in zip(parts, lists, strict=True)]
        return float(np.concatenate([measured.per_query["AP"] for measured in held_out]).mean())

    if "second" not in row:
        return {**row, "alpha": None, "train": map_at(1.0)}
    curve = [(alpha, map_at(alpha)) for alpha in GRID]
    alpha = best_alpha(curve)
    return {**row, "alpha": alpha, "train": dict(curve)[alpha], "curve": curve}


def run_of(measured: Measured, seed: int) -> dict[str, Any]:
    """One seed's figures, and those of each question by the first measure."""
    first = next(iter(measured.per_query.values())).tolist()
    return {"seed": seed, "test": measured.values, "per_query": dict(zip(measured.queries, first, strict=True))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept", type=Path, help="where 'matchloom reproduce cntn_semeval --keep' put the matchers")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of the data sets")
    options = parser.parse_args()
    table = read_table("cntn_semeval")
    models = {row.name: row.model for row in table.rows}
    models |= {VECTORS + name: model for name, model in models.items() if model in ("nbow_mlp", "cnn_mlp", "cntn")}
    seeds = table.rows[0].seeds
    tasks = [TASKS[table.task](options.data, seed) for seed in seeds]

    def all_parts(pairs: list[list[Pair]]) -> list[FusionScores]:
        found: list[FusionScores] = []
        for seed, task, some in zip(seeds, tasks, pairs, strict=True):
            same = {name: found[0][name] for name in models if found and some is pairs[0] and models[name] in UNTRAINED}
            rest = {name: model for name, model in models.items() if name not in same}
            scores = {name: part_scores(name, model, task, seed, options.kept, some) for name, model in rest.items()}
            found.append({**same, **scores})
        return found

    fifths = [task.development for task in tasks]
    lists = [CandidateLists.of(pairs, ["AP"]) for pairs in fifths]
    trained = all_parts(fifths)
    rows: list[dict[str, Any]] = [{"name": name, "first": name} for name in models]
    rows += [{"name": f"{row['first']} + {row['second']}", **row} for row in table.fusion]
    rows = [tuned(row, trained, lists) for row in rows]

    dev = tasks[0].test
    archive = archive_of(dev)
    place = {(pair.query_id, pair.text): n for n, pair in enumerate(archive)}
    listed = np.array([place[pair.query_id, pair.text] for pair in dev])
    labels = [None if pair.label is None else whole_label(pair) for pair in archive]
    ids = [pair.query_id for pair in archive], [pair.text_id for pair in archive]
    measured = {
        "lists": CandidateLists.of(dev, SETTINGS["lists"]),
        "archive": CandidateLists(*ids, labels, SETTINGS["archive"]),
    }
    tested = all_parts([archive] * len(tasks))
    for row in rows:
        for setting, chosen in (("lists", listed), ("archive", np.arange(len(archive)))):
            scores = [mixed(parts, row, row["alpha"])[chosen] for parts in tested]
            runs = zip(seeds, scores, strict=True)
            row[setting] = [run_of(measured[setting].measure(values), seed) for seed, values in runs]
    done = {
        "commit": commit(),
        "machine": {"python": platform.python_version(), "torch": str(torch.__version__)},
        "questions": {"train": sum(len(fifth.queries) for fifth in lists), "dev": len(measured["lists"].queries)},
        "archive": len(archive) // len(measured["lists"].queries),
        # Where the forum's search engine had the candidates; part one of the training set does not tell.
        "engine": measured["lists"].measure([-int(pair.text_id.rpartition("_R")[2]) for pair in dev]).values,
        "rows": rows,
    }
    with atomic_write(RESULTS) as file:
        json.dump(done, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
