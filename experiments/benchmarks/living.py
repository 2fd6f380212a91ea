"""What a collection goes through: a cold search, kills at random moments, and how well candidates are found.

    python -m experiments.benchmarks.living cold          # `matchloom search` as a new process
    python -m experiments.benchmarks.living fit           # `matchloom fit` from scratch, without an encoder
    python -m experiments.benchmarks.living kills         # 100 kills of a process that adds, removes and refits
    python -m experiments.benchmarks.living candidates    # InsuranceQA: 27,413 answers, of which 100 are compared

Results are kept in experiments/results/living.json. Cold: CovidFAQ, and HWU64 with 8,954 questions; the median of five
runs in wall and processor seconds, and the most memory. Fit: the same two, once each, with P@1 on their test
questions, which `fit` did not see. Kills: every change that was confirmed before the process was
killed must be there, whole, for a new reader and for one that was there all the time, and every checksum must fit.
Candidates: training questions are known, development questions are asked; "recall" is how often a right answer is among
the candidates, beside the first places of plain BM25 and of the learnt fusion over the same candidates.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments import places
from experiments.reproduction.provenance import commit
from matchloom import Collection, Pair, read_pairs
from matchloom.basics.files import atomic_write

RESULTS = places.RESULTS / "living.json"
KILLS, RUNS, ASKED = 100, 5, 500
_CHILD = """
import sys
from matchloom import Collection
kept = Collection.open(sys.argv[1])
print("ready", flush=True)
for n in range(int(sys.argv[2]), 10**9):
    kept.add([(f"question {i} of batch{n}", f"answer {i} of batch{n}") for i in range(3)])
    print("add", n, flush=True)
    kept.remove([kept.find(f"answer 0 of batch{n}").id])
    print("remove", n, flush=True)
    if n % 3 == 0:
        kept.refit()
        print("refit", n, flush=True)
"""


def cold(folder: Path) -> dict[str, Any]:
    """One question asked by a process that has just begun."""
    faq = [pair for name in ("covid_faq", "covid_train") for pair in read_pairs(places.DATA / "faq" / f"{name}.tsv")]
    many = list(read_pairs(places.DATA / "intents" / "hwu64_train.tsv"))
    found: dict[str, Any] = {}
    for name, pairs, question in (
        ("CovidFAQ, 585 questions", faq, "can I get it from my dog"),
        ("HWU64, 8,954 questions", many, "wake me at seven"),
    ):
        home = folder / name[:5]
        Collection.fit(pairs).save(home)
        command = [sys.executable, "-m", "matchloom", "search", str(home), question]
        runs = [_run(command) for _ in range(RUNS)]
        found[name] = {
            "seconds": statistics.median(run[0] for run in runs),
            "CPU seconds": statistics.median(run[1] for run in runs),
            "megabytes": max(run[2] for run in runs),
        }
    return found


def fit(folder: Path) -> dict[str, Any]:
    """All of `matchloom fit`, and how well what it made finds the answers to test questions."""
    found: dict[str, Any] = {}
    for name, home, files, test in (
        ("CovidFAQ, 585 questions", "faq", ("covid_faq", "covid_train"), "covid_test"),
        ("HWU64, 8,954 questions", "intents", ("hwu64_train",), "hwu64_test"),
    ):
        out = folder / home
        learnt = [str(places.DATA / home / f"{file}.tsv") for file in files]
        run = _run([sys.executable, "-m", "matchloom", "fit", *learnt, "--out", str(out), "--encoder", "none"])
        pairs = list(read_pairs(places.DATA / home / f"{test}.tsv"))
        hits = Collection.open(out).search([pair.query for pair in pairs], top=1)
        right = sum(bool(own) and own[0].id == pair.text_id for own, pair in zip(hits, pairs, strict=True))
        figures = ("seconds", "CPU seconds", "megabytes"), run
        found[name] = {**dict(zip(*figures, strict=True)), "P@1": right / len(pairs), "asked": len(pairs)}
    return found


def _run(command: Sequence[str]) -> tuple[float, float, float]:
    """Wall and processor seconds, and the most memory of a process."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
        "own = resource.getrusage(resource.RUSAGE_CHILDREN); print(own.ru_utime + own.ru_stime, own.ru_maxrss)"
    )
    start = time.perf_counter()
    said = subprocess.run([sys.executable, "-c", code, *command], check=True, capture_output=True, text=True).stdout
    cpu, most = said.split()
    empty = float(subprocess.run([sys.executable, "-c", _EMPTY], capture_output=True, text=True, check=True).stdout)
    return time.perf_counter() - start - empty, float(cpu), int(most) / 1024


_EMPTY = """
import subprocess, sys, time
start = time.perf_counter()
subprocess.run([sys.executable, "-c", "import subprocess"])
print(2 * (time.perf_counter() - start))
"""


def kills(folder: Path) -> dict[str, Any]:
    """Kill a process that changes a collection, again and again; what it had confirmed is there."""
    home = folder / "kept"
    pairs = [Pair(f"how do I use tool {n}", f"Take tool {n} by its handle.") for n in range(40)]
    Collection.fit(pairs, learn_weights=False).save(home)
    reader, draw, first = Collection.open(home), random.Random(0), 0
    done = {"kills": 0, "adds": 0, "removes": 0, "refits": 0, "lost": 0, "half": 0, "damaged": 0, "unlike": 0}
    added: set[int] = set()
    removed: set[int] = set()
    for _ in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(home), str(first)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(draw.uniform(0, 0.4))
        child.kill()
        said = child.stdout.read().splitlines(keepends=True)
        child.wait()
        for line in said:
            what, _, number = line.partition(" ")
            if not line.endswith("\n"):  # it was killed while it said so
                continue
            done[f"{what}s"] += 1
            if what == "add":
                added.add(int(number))
            if what == "remove":
                removed.add(int(number))
        opened = Collection.open(home)
        done["kills"] += 1
        done["damaged"] += not Collection.check(home)
        there: dict[int, set[int]] = {}
        for text in opened.entries.texts:
            if text.startswith("answer "):
                which, _, batch = text.removeprefix("answer ").partition(" of batch")
                there.setdefault(int(batch), set()).add(int(which))
        done["lost"] += len(added - there.keys())
        done["half"] += sum(
            own not in ({1, 2}, {0, 1, 2}) or (0 in own and batch in removed) for batch, own in there.items()
        )
        asked = f"question 1 of batch{max(there, default=0)}"
        done["unlike"] += opened.search(asked, top=3) != reader.search(asked, top=3)
        added |= there.keys()
        removed |= {batch for batch, own in there.items() if 0 not in own}
        first = max(there, default=-1) + 1
    return done


def candidates(folder: Path) -> dict[str, Any]:
    """How often a right answer of InsuranceQA is among the candidates, and first by BM25 and by the fusion."""
    home = places.DATA / "insuranceqa"
    lines: Callable[[str], list[str]] = lambda name: gzip.decompress((home / name).read_bytes()).decode().splitlines()  # noqa: E731
    texts = dict(line.split("\t", 1) for line in lines("answers.en.tsv.gz") if "\t" in line)
    train, asked = ([json.loads(line) for line in lines(f"{name}.jsonl.gz")] for name in ("train", "valid"))
    pairs = [
        Pair(row["en"], texts[str(one)], text_id=str(one))
        for row in train
        for one in row["answers"]
        if str(one) in texts
    ]
    pairs += [Pair("", text, text_id=name) for name, text in texts.items()]
    asked = asked[:ASKED]
    plain, learnt = Collection.fit(pairs, features=("bm25_doc",)), Collection.fit(pairs)
    found: dict[str, Any] = {"answers": len(texts), "questions": len(train), "asked": len(asked)}
    questions = [row["en"] for row in asked]
    right = [{str(one) for one in row["answers"]} for row in asked]
    for name, collection in (("BM25", plain), ("learnt fusion", learnt)):
        start = time.process_time()
        hits = collection.search(questions, top=100)
        spent = time.process_time() - start
        at = [
            next((n for n, hit in enumerate(own) if hit.id in gold), None)
            for own, gold in zip(hits, right, strict=True)
        ]
        found[name] = {
            "recall": sum(n is not None for n in at) / len(at),
            "P@1": sum(n == 0 for n in at) / len(at),
            "RR": sum(1 / (n + 1) for n in at if n is not None) / len(at),
            "CPU ms a question": 1000 * spent / len(at),
        }
    found["weights"] = dict(zip(learnt.fusion.names, learnt.fusion.weights.round(3).tolist(), strict=True))
    found["peak megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return found


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    work = {"cold": cold, "fit": fit, "kills": kills, "candidates": candidates}
    parser.add_argument("what", nargs="+", choices=work)
    for name in parser.parse_args().what:
        folder = Path(tempfile.mkdtemp(prefix="living-"))
        try:
            row = {**work[name](folder), "commit": commit(), "load": os.getloadavg()[0]}
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(name, json.dumps(row, indent=1), flush=True)
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        with atomic_write(RESULTS) as file:
            file.write(json.dumps({**kept, name: row}, indent=1) + "\n")


if __name__ == "__main__":
    main()
