"""Reproduce a published table: train every system of a TOML file, measure, print the table beside the paper's.

    python benchmarks/paper.py benchmarks/papers/mv_lstm_qa.toml --data ../shared/data

Each finished system is written to benchmarks/results at once, and is not run again unless --again is given.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import tomllib
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from lists import TASKS, Task
from matchloom.evaluation import evaluate
from matchloom.files import atomic_write
from matchloom.lexical import LEXICAL, fit_scorer
from matchloom.text.vectors import train_vectors
from matchloom.training import TrainConfig, train
from matchloom.types import Scorer
from provenance import commit

RESULTS = Path(__file__).parent / "results"
SHOWN = ("seed", "development", "test", "minutes")  # of each run, as soon as it is done


def run_system(system: dict[str, Any], table: dict[str, Any], task: Task, seed: int) -> dict[str, Any]:
    """Train (where there is something to train) and measure one system with one seed."""
    start = time.perf_counter()
    trained: dict[str, Any] = {}
    scorer: Scorer
    vectors = task.vectors
    if system["model"] in LEXICAL:
        right = [pair for pair in task.train if pair.label == 1]  # trans_lm learns from them
        scorer = fit_scorer(
            system["model"], task.collection, tokenizer=task.tokenizer, vectors=vectors, pairs=right, seed=seed
        )
    else:
        if vectors is None:
            texts = sorted({pair.query for pair in task.train} | {pair.text for pair in task.train})
            vectors = train_vectors(
                [task.tokenizer(text) for text in texts],
                dimensions=table.get("dimensions", 50),
                epochs=10,
                seed=seed,
                progress=True,
            )
        scorer = train(
            task.train,
            task.development,
            model=system["model"],
            arguments=system.get("arguments", {}),
            config=TrainConfig(**{**table.get("train", {}), **system.get("train", {}), "seed": seed}),
            tokenizer=task.tokenizer,
            vectors=vectors,
            progress=True,
        )
        trained = dict(scorer.training["best"])
    development = evaluate(scorer, task.development, measures=table["measures"], floors=False)
    entry: dict[str, Any] = {
        "seed": seed,
        "commit": commit(),
        "development": development.values,
        "minutes": 0.0,
        "best_epoch": trained,
    }
    if system.get("test", True):  # what only a choice on the development lists needs is not measured on the test lists
        entry |= test_figures(scorer, system, table, task)
    entry["minutes"] = round((time.perf_counter() - start) / 60, 2)
    return entry


def test_figures(scorer: Scorer, system: dict[str, Any], table: dict[str, Any], task: Task) -> dict[str, Any]:
    """The figures on the test lists, and for systems with `floors` what stands beside them."""
    report = evaluate(
        scorer,
        task.test,
        measures=table["measures"],
        floors=bool(system.get("floors")),
        vectors=task.vectors,
        collection=task.collection,
    )
    entry: dict[str, Any] = {"test": report.values, "lowest": report.low, "highest": report.high}
    if system.get("floors"):
        entry["probes"] = [
            {"name": p.name, "note": p.note, "values": p.measured.values, "p": p.p} for p in report.probes
        ]
        entry["floors"] = [{"name": f.name, "values": f.measured.values} for f in report.floors]
        entry["warnings"] = report.warnings
    return entry


def show(table: dict[str, Any], done: dict[str, Any], console: Console) -> None:
    """The table: test figures over the seeds, development figures, the paper's."""
    grid = Table(title=table["title"], caption=done["protocol"])
    grid.add_column("system")
    for name in table["measures"]:
        grid.add_column(f"test {name}", justify="right")
    grid.add_column(f"dev {table['measures'][0]}", justify="right")
    grid.add_column("seeds", justify="right")
    grid.add_column("minutes", justify="right")
    grid.add_column("published", justify="right")
    for system in table["system"]:
        runs = done["systems"].get(system["name"], [])
        if not runs:
            continue
        cells = []
        for part, name in [("test", n) for n in table["measures"]] + [("development", table["measures"][0])]:
            values = [run[part][name] for run in runs if part in run]
            spread = f" ±{stdev(values):.3f}" if len(values) > 1 else ""
            cells.append(f"{mean(values):.3f}{spread}" if values else "")
        published = " ".join(f"{value:.3f}" for value in system.get("published", []))
        if "published_development" in system:
            published += f" dev {system['published_development']:.3f}"
        minutes = f"{mean(run['minutes'] for run in runs):.1f}"
        grid.add_row(system["name"], *cells, str(len(runs)), minutes, published)
    console.print(grid)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="a file of benchmarks/papers")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of the data sets")
    parser.add_argument("--only", help="run only systems whose name contains this")
    parser.add_argument("--again", action="store_true", help="run systems that have results already")
    parser.add_argument("--show", action="store_true", help="only print the table of the results there are")
    options = parser.parse_args()
    table = tomllib.loads(options.table.read_text(encoding="utf-8"))
    path = RESULTS / f"{options.table.stem}.json"
    done = json.loads(path.read_text()) if path.exists() else {"systems": {}}
    console = Console(width=110)
    tasks: dict[int, Task] = {}
    for system in [] if options.show else table["system"]:
        if options.only and options.only not in system["name"]:
            continue
        runs = done["systems"].setdefault(system["name"], [])
        if options.again:
            runs.clear()
        for seed in system.get("seeds", table["seeds"]):
            if any(run["seed"] == seed for run in runs):
                continue
            split = seed if table.get("split_by_seed") else 0
            if split not in tasks:
                tasks[split] = TASKS[table["task"]](options.data, split)
                done["protocol"] = tasks[split].protocol
                done["sizes"] = {part: len(getattr(tasks[split], part)) for part in ("train", "development", "test")}
                done["machine"] = {"python": platform.python_version(), "torch": str(torch.__version__)}
            runs.append(run_system(system, table, tasks[split], seed))
            print(
                json.dumps({"system": system["name"], **{k: v for k, v in runs[-1].items() if k in SHOWN}}),
                flush=True,
            )
            RESULTS.mkdir(exist_ok=True)
            with atomic_write(path) as file:
                json.dump(done, file, indent=1)
                file.write("\n")
    show(table, done, console)


if __name__ == "__main__":
    main()
