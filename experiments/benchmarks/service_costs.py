"""What the largest legal requests cost: CPU seconds, the longest step (for which others wait), and bytes answered.

python -m experiments.benchmarks.service_costs
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matchloom.search.collection import Collection
from matchloom.service import Limits, handlers
from matchloom.service.desk.transfer import planned, read_import
from matchloom.service.problems import Refused
from matchloom.service.steps import Steps, encoded
from matchloom.service.systems import Folder, ServedSystem, read_system

_ANSWERS = ["Open Settings, then Reset password.", "Ask sales for an invoice.", "The link in your mail leads to it."]
_QUESTIONS = ["How do I reset my password?", "Can I pay by invoice?", "Where is my parcel?"]


def costs(system: ServedSystem, limits: Limits) -> Iterator[tuple[str, Steps[Any]]]:
    """Each request by its name."""
    texts = ["the password of my account " * 70] * 1000  # 1.9 MB
    long = "the password of my account " * 380
    asked = {"id": "", "candidates": [], "top": 10, "alpha": None, "form": "json"}
    yield "texts that are checked", limits.text_steps([long] * 1000, system.tokenizer)
    yield "/v1/rank, bm25", encoded(handlers.rank(None, long, texts, None))
    yield "/v1/rank, a collection", encoded(handlers.rank(system, long, texts, None))
    rows = ["the password of my account " * 60] * 1000
    yield "/v1/rank, explained", encoded(handlers.rank(system, "the password " * 20, rows, None, limits))
    many = [f"{n} the password of my account" for n in range(1000)]
    yield "/v1/search, 1,000 questions", encoded(handlers.search_many(system, many, None, {"top": 100}))
    told = {"top": 100, "explain": limits.cells}
    yield "/v1/search, explained", encoded(handlers.search_many(system, ["the the " * 900] * 100, None, told))
    yield (
        "/v1/explain",
        encoded(_explained(system, {**asked, "query": "the password " * 70, "text": "the " * 170}, limits)),
    )
    csv = "question,answer\n" + "".join(f"q{n},a{n}\n" for n in range(120_000))
    yield "import of 120,000 rows, dry run", _imported(system, csv)
    large = {**asked, "query": "the password " * 250, "text": "the password " * 250}
    yield "/v1/explain, refused", encoded(_explained(system, large, limits))


def _explained(system: ServedSystem, asked: dict[str, Any], limits: Limits) -> Steps[Any]:
    found = handlers.explain_pair(system, None, asked, limits)
    yield
    limits.check_map(len(found.query), len(found.text), len(found.trace.channels))
    return found.to_dict(grid=True)


def _imported(system: ServedSystem, content: str) -> Steps[Any]:
    given, _ = read_import(content, "csv")
    yield
    assert system.collection is not None
    return planned(system.collection.entries, given, replace=False).new


def measured(steps: Steps[Any]) -> tuple[float, float, int, str]:
    """CPU seconds, those of the longest step, bytes, and what became of it."""
    start = last = time.thread_time()
    longest, size, what = 0.0, 0, "answered"
    while True:
        try:
            next(steps)
        except StopIteration as end:
            size = len(end.value) if isinstance(end.value, bytes) else 0
        except Refused as refused:
            what = refused.code
        else:
            now = time.thread_time()
            longest, last = max(longest, now - last), now
            continue
        return time.thread_time() - start, max(longest, time.thread_time() - last), size, what


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "faq"
        Collection.fit(list(zip(_QUESTIONS, _ANSWERS, strict=True))).save(path)
        system = read_system(Folder("faq", path))
        print("| request | CPU s | longest step | bytes | |\n|---|---|---|---|---|")
        for name, steps in costs(system, Limits()):
            cpu, longest, size, what = measured(steps)
            print(f"| {name} | {cpu:.2f} | {longest:.2f} | {size:,} | {what} |", flush=True)


if __name__ == "__main__":
    main()
