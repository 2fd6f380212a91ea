"""A made-up paper with two tables, of lists and of pairs, on a task of colours."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.reproduction import running, tables
from experiments.reproduction.tasks import TASKS, PaperTask
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Pair
from tests.training.making import colour_pairs

COLOURS = """
title = "Colours of cloth"
task = "colours"
papers = ["Weaver, Table 1"]
measures = ["P@1", "RR"]
seeds = [0]
against = ["Random"]
t_test = true
own = "Net"
dimensions = 4
note = "Cloth here is not the paper's."

[train]
optimizer = "adam"
learning_rate = 0.01
epochs = 3
patience = 3
workers = 1

[[system]]
name = "Random"
model = "random"
seeds = [0, 1]
published = [0.25, 0.5]

[[system]]
name = "BM25"
model = "bm25"
published = [0.4, 0.6]

[[system]]
name = "Net"
model = "mv_lstm"
arguments = { hidden = 4, k = 2, interaction = "cosine" }
published = [0.5, 0.7]
baselines = true

[[system]]
name = "Net, half"
model = "mv_lstm"
arguments = { hidden = 2, k = 1, interaction = "cosine" }
test = false
"""
PAIRS = """
title = "Cloth that matches"
task = "cloth"
kind = "pairs"
measures = ["accuracy", "F1", "AP"]
against = ["BM25"]

[train]
epochs = 2
loss = "cross_entropy"
measure = "AP"

[[system]]
name = "BM25"
model = "bm25"
published = [0.7, 0.8]

[[system]]
name = "Net"
model = "mv_lstm"
arguments = { hidden = 4, k = 2, interaction = "cosine" }
"""
TRIALS = """
title = "Trials of colours"
task = "colours"
measures = ["P@1", "RR"]

[[system]]
name = "BM25, untested"
model = "bm25"
test = false
"""
WRITTEN = {"colours": COLOURS, "cloth": PAIRS, "trials_colours": TRIALS}


def colours(data: Path, seed: int) -> PaperTask:
    train, development, test = (colour_pairs(n, seed=seed + place) for place, n in enumerate((24, 10, 10)))
    texts = sorted({pair.text for pair in train})
    return PaperTask(train, development, test, Tokenizer(), texts, None, "lists of four")


def independent(pairs: list[Pair]) -> list[Pair]:
    return [pair._replace(query_id="", text_id="", query=f"{pair.query} {n}") for n, pair in enumerate(pairs)]


def cloth(data: Path, seed: int) -> PaperTask:
    (data / "cloth" / "all.tsv").read_text(encoding="utf-8")
    task = colours(data, seed)
    parts = {part: independent(getattr(task, part)) for part in ("train", "development", "test")}
    return task._replace(protocol="pairs", **parts)


@pytest.fixture(autouse=True)
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the TOMLs in place of the package's, with a task that needs no data and one that does."""
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, content in WRITTEN.items():
        (folder / f"{name}.toml").write_text(content, encoding="utf-8")
    monkeypatch.setattr(tables, "TABLES", folder)
    monkeypatch.setitem(TASKS, "colours", colours)
    monkeypatch.setitem(TASKS, "cloth", cloth)
    monkeypatch.setitem(tables.FOLDERS, "colours", ())
    monkeypatch.setattr(running, "_all_minutes", lambda: {"colours": {"Net": 2.5, "Random": 0.01}})
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with the data of the second task."""
    (tmp_path / "data" / "cloth").mkdir(parents=True)
    (tmp_path / "data" / "cloth" / "all.tsv").write_text("", encoding="utf-8")
    return tmp_path / "data"
