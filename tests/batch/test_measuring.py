"""Measuring by shards gives the figures of one process, in parts that fit into memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matchloom import evaluate, load, read_pairs
from matchloom.batch import measuring
from matchloom.batch.measuring import MeasureWork, evaluate_shards
from tests.batch.making import WORDS
from tests.cli.conftest import Run, error_of, run  # noqa: F401
from tests.refusing import refused


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lists of six, each over two shards in folders of their own; some texts stand there twice, a few lack a label."""
    folder = tmp_path_factory.mktemp("lists") / "shards"
    rows = [
        {
            "query": f"what is a {WORDS[q % 12]} number {q} for?",
            "text": f"a {WORDS[(q + c) % 12]} makes {WORDS[(q * 7) % 12]}",
            "label": int(c == q % 5) if q % 9 else 1,
        }
        for c in (0, 1, 2, 3, 3, 4)
        for q in range(40)
    ]
    for n in range(4):
        (folder / f"day={n % 2}").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows[n * 60 : n * 60 + 60]), folder / f"day={n % 2}" / f"{n}.parquet")
    return folder


@pytest.mark.parametrize("rows", [1_000_000, 50])
def test_figures_are_those_of_one_process(
    shards: Path, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "PART", rows)  # 50: five parts
    work = MeasureWork("bm25", collection=str(shards / "day=0" / "0.parquet"))
    made = evaluate_shards(work, shards, tmp_path / "out", measures=["AP", "RR", "P@1"])
    pairs = list(read_pairs(shards))
    texts = [pair.text for pair in read_pairs(shards / "day=0" / "0.parquet")]
    whole = evaluate("bm25", pairs, measures=["AP", "RR", "P@1"], baselines=False, collection=texts)
    assert made.name == whole.name
    assert made.per_query == whole.per_query
    assert made.to_dict() == whole.to_dict()
    kept = pq.read_table(tmp_path / "out" / "day=0" / "0.parquet")
    assert "text" not in kept.column_names  # what is kept is small


def test_no_list_that_counts_and_unlabelled_pairs_are_told(tmp_path: Path) -> None:
    (tmp_path / "shards").mkdir()
    one = {"query": ["a", "a"], "text": ["b", "c"]}
    pq.write_table(pa.table({**one, "label": [1, 1]}), tmp_path / "shards" / "0.parquet")
    work = MeasureWork("random")
    with refused("no_data", "collection"):
        evaluate_shards(MeasureWork("bm25"), tmp_path / "shards", tmp_path / "out")
    work = MeasureWork("bm25", collection=str(tmp_path / "shards" / "0.parquet"))
    with refused("bad_labels", "none of 1 questions"):
        evaluate_shards(work, tmp_path / "shards", tmp_path / "out")
    pq.write_table(pa.table({**one, "label": pa.array([1, None])}), tmp_path / "shards" / "0.parquet")
    with refused("bad_row", "label None"):
        evaluate_shards(work, tmp_path / "shards", tmp_path / "other")


def test_command(shards: Path, tmp_path: Path, run: Run) -> None:  # noqa: F811
    from matchloom import Collection

    Collection.create(tmp_path / "faq", [("what is a loom for?", "a loom makes cloth"), ("a mill?", "a mill grinds")])
    out = tmp_path / "out"
    done = run("evaluate", tmp_path / "faq", shards, "--engine", "local", "--out", out, "--json", "-")
    assert done.code == 0, done
    values = json.loads(done.out)["values"]
    whole = evaluate(load(tmp_path / "faq"), shards, baselines=False)  # type: ignore[arg-type]
    assert np.allclose(list(values.values()), list(whole.values.values()))
    assert "--out" in error_of(run("evaluate", "bm25", shards, "--engine", "local"))
    assert "--engine" in error_of(run("evaluate", "bm25", shards, "--out", out))
    assert "--run" in error_of(run("evaluate", "bm25", shards, "--engine", "local", "--out", out, "--run", "x.run"))


def test_rows_that_were_damaged_meanwhile_are_named(shards: Path, tmp_path: Path) -> None:
    work = MeasureWork("bm25", collection=str(shards / "day=0" / "0.parquet"))
    evaluate_shards(work, shards, tmp_path / "out", measures=["RR"])
    made = tmp_path / "out" / "day=1" / "1.parquet"
    content = bytearray(made.read_bytes())
    start = pq.ParquetFile(made).metadata.row_group(0).column(0).dictionary_page_offset
    content[start : start + 60] = bytes(60)  # the footer is whole
    made.write_bytes(content)
    with refused("damaged", made):
        evaluate_shards(work, shards, tmp_path / "out", measures=["RR"])
