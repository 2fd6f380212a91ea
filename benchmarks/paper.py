"""Reproduce a published table: train every system of a TOML file, measure, print the table beside the paper's.

    python -m benchmarks.paper src/matchloom/reproduction/tables/qa.toml --data ../shared/data

Each finished system is written to benchmarks/results at once, and is not run again unless --again is given. At the end
the pictures and docs/results.md are made anew.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import platform
import time
import tomllib
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import figures
from benchmarks.page import PAGE, results_page, table_rows
from benchmarks.provenance import commit
from matchloom.comparison import System, make_scorer
from matchloom.evaluation import evaluate
from matchloom.files import atomic_write
from matchloom.matcher import Matcher
from matchloom.models import MODELS, model_training
from matchloom.reproduction.tasks import TASKS, Task
from matchloom.text.vectors import train_vectors
from matchloom.types import Scorer

RESULTS = Path(__file__).parent / "results"
SHOWN = ("seed", "development", "minutes")  # of each run, as soon as it is done; the table shows the rest


def run_system(
    system: dict[str, Any], table: dict[str, Any], task: Task, seed: int, keep: Path | None
) -> dict[str, Any]:
    """Train (where there is something to train) and measure one system with one seed."""
    start = time.perf_counter()
    vectors, settings = task.vectors, {}
    if system["model"] in MODELS:
        settings = {**table.get("train", {}), **model_training(system["model"]), **system.get("train", {})}
        if vectors is None:
            texts = sorted({pair.query for pair in task.train} | {pair.text for pair in task.train})
            vectors = train_vectors(
                [task.tokenizer(text) for text in texts],
                dimensions=table.get("dimensions", 50),
                epochs=10,
                seed=seed,
                progress=True,
            )
    scorer = make_scorer(
        System(system["name"], system["model"], system.get("arguments", {}), settings),
        task.train,
        task.development,
        tokenizer=task.tokenizer,
        vectors=vectors,
        collection=task.collection,
        seed=seed,
        paper=True,
        progress=True,
    )
    if isinstance(scorer, Matcher) and keep is not None:
        scorer.save(keep / kept_as(system["name"], seed))
    subset = table.get("subsets", ["both"])[0]
    development = evaluate(scorer, task.development, measures=table["measures"], subset=subset, baselines=False)
    entry: dict[str, Any] = {
        "seed": seed,
        "commit": commit(),
        "development": development.values,
        "minutes": 0.0,
        "best_epoch": dict(scorer.training["best"]) if isinstance(scorer, Matcher) else {},
    }
    if system.get("test", True):  # what only a choice on the development lists needs is not measured on the test lists
        entry |= test_figures(scorer, system, table, task)
    entry["minutes"] = round((time.perf_counter() - start) / 60, 2)
    return entry


def kept_as(name: str, seed: int) -> str:
    """The folder of a matcher that is kept."""
    return f"{name}, seed {seed}"


def test_figures(scorer: Scorer, system: dict[str, Any], table: dict[str, Any], task: Task) -> dict[str, Any]:
    """The figures on the test lists, and for systems with `baselines` what stands beside them."""
    reports = {
        subset: evaluate(
            scorer,
            task.test,
            measures=table["measures"],
            subset=subset,
            baselines=bool(system.get("baselines")),
            vectors=task.vectors,
            collection=task.collection,
        )
        for subset in table.get("subsets", ["both"])
    }
    report = next(iter(reports.values()))
    entry: dict[str, Any] = {
        "test": report.values,
        "lowest": report.low,
        "highest": report.high,
        "other_subsets": {subset: other.values for subset, other in reports.items() if other is not report},
    }
    if table.get("against"):
        entry["per_query"] = {query: row[table["measures"][0]] for query, row in report.per_query.items()}
    if system.get("baselines"):
        entry["probes"] = [
            {"name": p.name, "note": p.note, "values": p.measured.values, "p": p.p} for p in report.probes
        ]
        entry["baselines"] = [{"name": f.name, "values": f.measured.values} for f in report.baselines]
        entry["warnings"] = report.warnings
    return entry


def show(table: dict[str, Any], done: dict[str, Any], console: Console) -> None:
    """The table as the results page has it."""
    head, *rows = table_rows(table, done)
    grid = Table(*head, title=table["title"], caption=done["protocol"])
    for row in rows:
        grid.add_row(*row)
    console.print(grid)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="a file of benchmarks/papers")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of the data sets")
    parser.add_argument("--only", help="run only the system of this name, or else those whose names contain it")
    parser.add_argument("--seed", type=int, help="run only this seed; several processes may share the work")
    parser.add_argument("--again", action="store_true", help="run systems that have results already")
    parser.add_argument("--keep", type=Path, help="save every matcher in this folder")
    parser.add_argument("--show", action="store_true", help="only print the table of the results there are")
    options = parser.parse_args()
    table = tomllib.loads(options.table.read_text(encoding="utf-8"))
    path = RESULTS / f"{options.table.stem}.json"
    console = Console(width=140)
    tasks: dict[int, Task] = {}
    names = [system["name"] for system in table["system"]]
    wanted = [options.only] if options.only in names else [name for name in names if (options.only or "") in name]
    for system in [] if options.show else table["system"]:
        if system["name"] not in wanted:
            continue
        for seed in system.get("seeds", table["seeds"]):
            there = any(run["seed"] == seed for run in read(path)["systems"].get(system["name"], []))
            if (there and not options.again) or (options.seed is not None and seed != options.seed):
                continue
            split = seed if table.get("split_by_seed") else 0
            if split not in tasks:
                tasks[split] = TASKS[table["task"]](options.data, split)
            entry = run_system(system, table, tasks[split], seed, options.keep)
            print(json.dumps({"system": system["name"], **{k: v for k, v in entry.items() if k in SHOWN}}), flush=True)
            add(path, system["name"], entry, tasks[split])
    show(table, read(path), console)
    if not options.show:
        figures.main()
        with atomic_write(PAGE) as file:
            file.write(results_page())


def read(path: Path) -> dict[str, Any]:
    """The results so far."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"systems": {}}


def add(path: Path, name: str, entry: dict[str, Any], task: Task) -> None:
    """Put one run in place of an earlier one with its seed. Other processes may add to the same file."""
    path.parent.mkdir(exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = read(path)
        done["protocol"] = task.protocol
        done["sizes"] = {part: len(getattr(task, part)) for part in ("train", "development", "test")}
        done["machine"] = {"python": platform.python_version(), "torch": str(torch.__version__)}
        others = [run for run in done["systems"].get(name, []) if run["seed"] != entry["seed"]]
        done["systems"][name] = sorted([*others, entry], key=lambda run: run["seed"])
        with atomic_write(path) as file:
            json.dump(done, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
