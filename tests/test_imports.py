"""What needs no network loads no torch: commands and imports in a fresh process, which then looks at sys.modules."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from matchloom.cli.commands import COMMANDS

NETWORK = ("torch", "lancedb", "gensim", "tomotopy", "rjieba", "scipy.stats")
HEAVY = (*NETWORK, "sklearn", "fastapi", "httpx", "python_calamine")
# What is cheap to leave out of help, too; a second or so together.
MORE = ("scipy", "pyarrow", "bm25s", "ir_measures", "pandas", "matplotlib")

LISTS = """query\ttext\tlabel
how do I weave wool\ta loom weaves wool into cloth\t1
how do I weave wool\ta mill grinds corn to flour\t0
who grinds the corn\ta mill grinds corn to flour\t1
who grinds the corn\ta loom weaves wool into cloth\t0
where is bread baked\tan oven bakes bread and cake\t1
where is bread baked\ta loom weaves wool into cloth\t0
"""
FAQ = "question\tanswer\n" + "".join(
    f"{asks} {thing}{end}\t{answer}\n"
    for thing, answer in (
        ("my password", "Open the settings and choose a new password."),
        ("an invoice", "Invoices are sent by mail on the first of each month."),
        ("a parcel", "Parcels leave our house within two days."),
        ("the account", "Write to us and the account is closed."),
    )
    for asks, end in (("how do I change", "?"), ("I have lost", ""), ("what about", ", please"), ("where is", "?"))
)
RUN = "q1 Q0 a 1 0.9 x\nq1 Q0 b 2 0.4 x\nq2 Q0 a 1 0.8 x\nq2 Q0 b 2 0.1 x\n"
QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 a 0\nq2 0 b 1\n"


SERVED = """
import asyncio, httpx
from matchloom.service import create_app
from matchloom.service.systems import Folder
app = create_app([Folder.of("faq")])
app.state.service.shelf.load()
async def ask():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        return await client.post("/v1/search", json={"system": "faq", "question": "lost parcel"})
answer = asyncio.run(ask())
assert answer.status_code == 200, answer.text
"""


class Case(NamedTuple):
    """What one process does, in order: commands, or lines of Python; and what it must not have loaded at any step.

    Commands of `before` run in a process of their own, which may load anything.
    """

    steps: Sequence[str | list[str]]
    unloaded: tuple[str, ...] = HEAVY
    before: Sequence[str | list[str]] = ()


FIT: str | list[str] = ["fit", "faq.tsv", "--out", "faq", "--encoder", "none"]
PARTS = ["types", "text.tokenize", "text.vectors", "lexical", "data.formats", "data.negatives", "data.reader"]
PARTS += ["data.identity", "data.splits", "evaluation", "explanation", "traces", "calibration", "basics.files"]
PARTS += ["encoders.library", "training.config", "artifact", "basics.progress", "basics.parallel", "basics.validation"]
CASES = {
    "import": Case(["import matchloom", *(f"import matchloom.{part}" for part in PARTS)]),
    "public names": Case(["from matchloom import BM25, Pair, TrainConfig, evaluate, explain, load, mine_negatives"]),
    "help": Case([[], ["--help"], *([name, "--help"] for name in COMMANDS)], (*HEAVY, *MORE)),
    "lexical": Case(
        [
            ["evaluate", "bm25", "lists.tsv", "--run", "out.run", "--qrels", "out.qrels"],
            ["evaluate", "bm25_stemmed", "faq.tsv"],
            ["score", "bm25", "lists.tsv"],
            ["rank", "bm25", "grind corn", "lists.tsv", "--explain"],
            ["explain", "bm25", "grind corn", "a mill grinds corn"],
            ["trans-lm", "faq.tsv", "--out", "faq.words"],
            ["rank", "faq.words", "lost parcel", "faq.tsv"],
        ]
    ),
    "data": Case(
        [
            ["import", "faq.tsv", "--out", "again.tsv"],
            ["check", "again.tsv", "--test", "lists.tsv", "--html", "check.html", "--fix", "fixed.tsv"],
            ["split", "lists.tsv", "--out", "parts", "--parts", "2,1"],
            ["mine", "faq.tsv", "--out", "mined.tsv", "--count", "1"],
            ["doctor", "some.run", "some.qrels"],
            ["corpus"],
        ]
    ),
    "lists": Case([["models"], ["encoders"]]),
    "fit": Case([FIT], tuple(name for name in NETWORK if name != "scipy.stats")),  # which scikit-learn brings
    "search": Case(
        [["search", "faq", "lost parcel", "--top", "2", "--explain"]],
        (*HEAVY, "pyarrow", "bm25s", "pandas", "matplotlib", "ir_measures"),
        before=[FIT],
    ),
    "changes": Case(
        [["add", "faq", "--question", "a lost key", "--answer", "Call us.", "--id", "key"], ["remove", "faq", "key"]],
        before=[FIT],
    ),
    "serve": Case([SERVED], NETWORK, before=[FIT]),
    "train": Case(
        [["train", "lists.tsv", "--out", "matcher", "--epochs", "1", "--dev", "lists.tsv", "--vectors", "random"]],
        ("torch._dynamo",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_loads_no_more_than_it_needs(name: str, tmp_path: Path) -> None:
    for file, content in (("lists.tsv", LISTS), ("faq.tsv", FAQ), ("some.run", RUN), ("some.qrels", QRELS)):
        (tmp_path / file).write_text(content)
    case = CASES[name]
    if case.before:
        assert _faults(Case(case.before, ()), tmp_path) == ""
    assert _faults(case, tmp_path) == ""


def test_the_rule_can_fail(tmp_path: Path) -> None:
    assert "{'pyarrow'}" in _faults(Case(["import json", "import pyarrow"], MORE), tmp_path)


def _faults(case: Case, folder: Path) -> str:
    """The end of what a process complains of that takes these steps; empty where there is nothing."""
    done = subprocess.run(
        [sys.executable, "-c", _program(case)], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    return done.stderr[-2000:] if done.returncode else ""


def _program(case: Case) -> str:
    """Each step, and behind it a look at what is there."""
    lines = ["import sys", "from matchloom.cli import main"]
    for step in case.steps:
        lines.append(step if isinstance(step, str) else f"assert main({step!r}) == 0, {step!r}")
        lines.append(f"assert not (found := {set(case.unloaded)!r} & sys.modules.keys()), ({step!r}, found)")
    return "\n".join(lines)
