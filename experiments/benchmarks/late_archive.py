"""Search in an archive of a late-interaction matcher: time, bytes, and the right answers that are found.

    python -m experiments.benchmarks.late_archive runs/minilm       # to experiments/results/late_archive.json

The archive holds 20,000 answers of the community questions `cqa` (the folder MATCHLOOM_DATA, or ../shared/data beside
the project), 5 to 50 words each, without their questions, so that nothing but the match s(t, a) decides (alpha 0). Of
the questions 300 are asked; one answer is right for each. The encoder has seen such texts (Amazon QA), so that its
figures are too good beside BM25's; what the candidates miss of an exhaustive search is not touched by that. BM25 alone
is what an archive without a matcher searches by; exhaustive is every stored answer matched with the question. One
thread; times are medians of a search, its CPU time beside.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments import places
from experiments.corpora.cqa import read_cqa
from experiments.reproduction.provenance import commit
from matchloom import Matcher, Pair
from matchloom.basics.files import atomic_write
from matchloom.search.lance.collection import LanceCollection
from matchloom.search.lance.positions import positions_of
from matchloom.search.lance.table import POSITIONS

DATA = places.DATA / "cqa"
RESULTS = places.RESULTS / "late_archive.json"
APPENDED = 500

Found = list[list[str]]  # for each question the ids that came first


def material(answers: int, questions: int) -> tuple[list[Pair], list[str], list[set[str]]]:
    """Answers to archive, questions to ask, and the right ids of each."""
    pairs = read_cqa(DATA / "cqa_5_50.tsv.gz")
    drawn = [pairs[n] for n in np.random.default_rng(0).permutation(len(pairs))[:answers]]
    archived = [Pair("", pair.text, text_id=f"a{n}") for n, pair in enumerate(drawn)]
    return archived, [pair.query for pair in drawn[:questions]], [{f"a{n}"} for n in range(questions)]


def timed(work: Callable[[str], list[str]], questions: Iterable[str]) -> tuple[Found, dict[str, float]]:
    """What it gives for each question, and the median milliseconds."""
    found, walls, cpus = [], [], []
    for question in questions:
        wall, cpu = time.perf_counter(), time.process_time()
        found.append(work(question))
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return found, {"ms": 1e3 * float(np.median(walls)), "cpu_ms": 1e3 * float(np.median(cpus))}


def measured(found: Found, right: list[set[str]]) -> dict[str, float]:
    """P@1, and how many questions have a right answer among the first ten and the first hundred."""
    return {
        "P@1": float(np.mean([one[0] in own for one, own in zip(found, right, strict=True)])),
        **{
            f"found@{n}": float(np.mean([bool(own & {*one[:n]}) for one, own in zip(found, right, strict=True)]))
            for n in (10, 100)
        },
    }


def searched(index: LanceCollection, questions: list[str], right: list[set[str]], candidates: int) -> dict[str, Any]:
    """The figures of an archive that looks at so many candidates."""

    def search(question: str) -> list[str]:
        return [one.id for one in index.search(question, top=100, candidates=candidates, alpha=0.0)]

    search(questions[0])
    found, took = timed(search, questions)
    # Ten answers are what a user sees, and what a search is timed by.
    _, ten = timed(
        lambda question: [one.id for one in index.search(question, candidates=candidates, alpha=0.0)], questions
    )
    return {"candidates": candidates, **ten, "ms_of_100_shown": took["ms"], **measured(found, right), "first": found}


def exhaustive(index: LanceCollection, questions: list[str], right: list[set[str]]) -> dict[str, Any]:
    """Every stored answer matched with every question."""
    snapshot, matcher = index.snapshot(), index.matcher
    size = snapshot.manifest.position_size
    assert matcher is not None
    assert size is not None
    names, stored = [], []
    for batch in snapshot.store.batches(1000, ["id", POSITIONS[1]]):
        names += batch.column("id").to_pylist()
        stored += positions_of(batch, POSITIONS[1], size)

    def search(question: str) -> list[str]:
        scores = matcher.match_positions(matcher.positions([question])[0], stored)
        return [names[n] for n in sorted(range(len(names)), key=lambda n: (-scores[n], names[n]))[:100]]

    found, took = timed(search, questions)
    words = sum(map(len, stored)) / len(stored)
    return {"candidates": len(names), **took, **measured(found, right), "first": found, "words_an_answer": words}


def run(folder: Path, answers: int, questions: int) -> dict[str, Any]:
    """All figures for one matcher."""
    pairs, asked, right = material(answers, questions)
    matcher = Matcher.load(folder)
    out: dict[str, Any] = {
        "answers": len(pairs),
        "questions": len(asked),
        "commit": commit(),
        "torch": torch.__version__,
    }
    out |= {"processor": platform.processor() or platform.machine(), "arguments": matcher.arguments}
    with tempfile.TemporaryDirectory() as scratch:
        plain = LanceCollection.create(Path(scratch) / "plain", tokenizer=matcher.tokenizer._replace(max_words=None))
        plain.add(pairs)
        index = LanceCollection.create(Path(scratch) / "late", matcher)
        cpu = time.process_time()
        index.add(pairs[:-APPENDED])
        out["answers_encoded_a_cpu_second"] = (len(pairs) - APPENDED) / (time.process_time() - cpu)
        cpu = time.process_time()
        index.add(pairs[-APPENDED:])
        out["append_of_500_cpu_seconds"] = time.process_time() - cpu
        out["bytes_an_answer"] = index.status()["bytes"] / len(pairs)
        out["bytes_an_answer_without_matcher"] = plain.status()["bytes"] / len(pairs)
        whole = exhaustive(index, asked, right)
        rows = {
            "BM25": searched(plain, asked, right, 100),
            **{f"late interaction, {n} candidates": searched(index, asked, right, n) for n in (100, 300, 1000)},
            "exhaustive": whole,
        }
    best = [one[0] for one in whole["first"]]
    for row in rows.values():
        first = row.pop("first")
        row["first_of_exhaustive_found"] = float(np.mean([a in b for a, b in zip(best, first, strict=True)]))
    return {**out, "rows": rows}


def main() -> None:
    """Measure one matcher and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("matcher", type=Path)
    parser.add_argument("--answers", type=int, default=20_000)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--name", default="all-MiniLM-L6-v2")
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found[given.name] = run(given.matcher, given.answers, given.questions)
    with atomic_write(RESULTS) as file:
        file.write(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found[given.name], indent=1))


if __name__ == "__main__":
    main()
