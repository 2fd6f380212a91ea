"""Work by shards: every row once, in its order, whole or not at all, and not again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matchloom import Collection, Pair, artifact, mine_negatives
from matchloom.batch import run as running
from matchloom.batch.run import run_batch
from matchloom.batch.works import EncodeWork, MineWork, ScoreWork, map_in_arrow, positives_elsewhere
from matchloom.data.formats import read_pairs
from tests.batch.making import make_shards, read_folder
from tests.cli.conftest import Run, error_of, run  # noqa: F401
from tests.refusing import refused


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shards(tmp_path_factory.mktemp("batch") / "pairs")


@pytest.fixture(scope="module")
def faq(shards: Path) -> str:
    folder = shards.parent / "faq"
    Collection.create(folder, shards / "part-000.parquet")
    return str(folder)


def test_scores_are_the_scorers_own_and_rows_keep_their_place(shards: Path, faq: str, tmp_path: Path) -> None:
    done = run_batch(ScoreWork(faq), shards, tmp_path / "out")
    assert (done.shards, done.skipped, done.rows) == (4, 0, 120)
    own, made = read_folder(shards), read_folder(tmp_path / "out")
    assert list(made) == list(own)
    for name, columns in own.items():
        assert {key: value for key, value in made[name].items() if key != "score"} == columns
        pairs = [Pair(q, a) for q, a in zip(columns["question"], columns["answer"], strict=True)]
        scores = artifact.load(faq).score(pairs)  # type: ignore[union-attr]
        assert np.array_equal(np.array(made[name]["score"], dtype=np.float32), scores)
    assert pq.read_schema(tmp_path / "out" / "part-000.parquet").field("own").type == pa.int32()


def test_what_is_finished_is_not_done_again(shards: Path, faq: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_batch(ScoreWork(faq), shards, out)
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    (out / "part-002.parquet").unlink()
    done = run_batch(ScoreWork(faq), shards, out)
    assert (done.skipped, done.rows) == (3, 30)
    after = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert [name for name in before if before[name] != after[name]] == ["part-002.parquet"]
    with refused("exists", "part-000.parquet"):
        run_batch(ScoreWork("bm25", collection=str(shards / "part-000.parquet")), shards, out)


def test_spark_would_get_the_same(shards: Path, faq: str, tmp_path: Path) -> None:
    run_batch(ScoreWork(faq), shards, tmp_path / "out")
    table = pq.read_table(shards / "part-001.parquet")
    batches = list(map_in_arrow(ScoreWork(faq))(table.to_batches(max_chunksize=7)))
    assert (
        pa.Table.from_batches(batches)["score"].to_pylist()
        == read_folder(tmp_path / "out")["part-001.parquet"]["score"]
    )
    mined = list(map_in_arrow(MineWork(str(shards), count=2, top=5))(table.to_batches(max_chunksize=7)))
    assert sum(batch.num_rows for batch in mined) == 30 * 3
    assert list(map_in_arrow(MineWork(str(shards)))([])) == []


def test_mining_draws_what_one_process_draws(shards: Path, tmp_path: Path) -> None:
    run_batch(MineWork(str(shards), count=3, top=20, source="query"), shards, tmp_path / "out")
    pairs = [pair for path in sorted(shards.iterdir()) for pair in read_pairs(path, fill_ids=False)]
    whole = list(mine_negatives(pairs, count=3, top=20, source="query"))
    made = [row for path in sorted((tmp_path / "out").iterdir()) for row in pq.read_table(path).to_pylist()]
    assert [Pair(**row) for row in made] == whole


def test_a_positive_of_another_shard_is_no_negative(tmp_path: Path) -> None:
    folder = tmp_path / "pairs"
    folder.mkdir()
    answers = ["use a loom", "use a mill", "use a saw", "use an oven"]
    for n, answer in enumerate(answers):
        own = {"query": ["how?", f"other {n}"], "text": [answer, answer], "query_id": ["how", f"o{n}"]}
        pq.write_table(pa.table(own), folder / f"{n}.parquet")
    paths = sorted(folder.iterdir())
    known = positives_elsewhere(paths, None)
    assert known == {"how?": tuple(sorted(answers))}
    pq.write_table(pa.table({"query": ["x"] * 6, "text": [*answers, "a", "b"]}), tmp_path / "pool.parquet")
    run_batch(
        MineWork(str(tmp_path / "pool.parquet"), count=2, source="random", top=6, elsewhere=known),
        folder,
        tmp_path / "out",
    )
    rows = [row for path in (tmp_path / "out").iterdir() for row in pq.read_table(path).to_pylist()]
    assert {row["text"] for row in rows if row["query_id"] == "how" and not row["label"]} == {"a", "b"}


def test_vectors_are_the_matchers_own(shards: Path, tmp_path: Path) -> None:
    from tests.service.making import make_matcher

    matcher = make_matcher("lstm_rnn")
    matcher.save(tmp_path / "matcher")
    run_batch(EncodeWork(str(tmp_path / "matcher"), side="query"), shards / "part-003.parquet", tmp_path / "out")
    made = pq.read_table(tmp_path / "out" / "part-003.parquet")
    expected = matcher.vectors(made["question"].to_pylist())
    assert np.array_equal(np.array(made["vector"].to_pylist(), dtype=np.float32), expected)
    with refused("unknown_name", "side"):
        run_batch(EncodeWork(str(tmp_path / "matcher"), side="left"), shards, tmp_path / "other")


def broken(shards: Path, folder: Path, how: str) -> Path:
    shutil.copytree(shards, folder)
    one = folder / "part-001.parquet"
    if how == "cut":
        one.write_bytes(one.read_bytes()[:-40])
    elif how == "middle":
        start = pq.ParquetFile(one).metadata.row_group(0).column(0).dictionary_page_offset
        content = bytearray(one.read_bytes())
        content[start : start + 60] = bytes(60)
        one.write_bytes(content)
    elif how == "columns":
        pq.write_table(pa.table({"a": [1]}), one)
    elif how == "row":
        table = pq.read_table(one).to_pydict()
        table["question"][3] = table["answer"][3] = ""
        pq.write_table(pa.table(table), one)
    return folder


@pytest.mark.parametrize("how", ["cut", "middle", "columns", "row"])
def test_a_bad_shard_is_named_and_the_rest_kept(how: str, shards: Path, faq: str, tmp_path: Path) -> None:
    folder = broken(shards, tmp_path / "pairs", how)
    with refused("failed", folder / "part-001.parquet", *(["row 4"] if how == "row" else [])):
        run_batch(ScoreWork(faq), folder, tmp_path / "out")
    assert sorted(read_folder(tmp_path / "out")) == [f"part-{n:03}.parquet" for n in (0, 2, 3)]
    assert not [path for path in (tmp_path / "out").iterdir() if "part-001" in path.name]
    shutil.copy(shards / "part-001.parquet", folder)
    assert run_batch(ScoreWork(faq), folder, tmp_path / "out").skipped == 3


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_a_shard_that_changes_meanwhile_is_named(
    how: str, shards: Path, faq: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(shards, tmp_path / "pairs"))
    own = running.do_shard

    def meddle(function: Any, shard: Any, whole: bool) -> Any:
        done = own(function, shard, whole)
        last = folder / "part-003.parquet"
        if shard.source.endswith("000.parquet"):
            last.unlink() if how == "gone" else last.write_bytes(last.read_bytes() + b" ")
        return done

    monkeypatch.setattr(running, "do_shard", meddle)
    with refused("failed", folder / "part-003.parquet"):
        run_batch(ScoreWork(faq), folder, tmp_path / "out")
    assert len(read_folder(tmp_path / "out")) == 3


def test_an_empty_shard_stays_one(shards: Path, faq: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(shards, tmp_path / "pairs"))
    pq.write_table(pq.read_table(folder / "part-000.parquet").slice(0, 0), folder / "part-000.parquet")
    assert run_batch(ScoreWork(faq), folder, tmp_path / "out").rows == 90
    made = pq.read_table(tmp_path / "out" / "part-000.parquet")
    assert (made.num_rows, made.schema.names[-1]) == (0, "score")
    assert run_batch(MineWork(str(folder), count=1, top=3), folder, tmp_path / "mined").rows == 180


def test_a_full_disk_leaves_no_half_of_a_shard(
    shards: Path, faq: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", full)
        with refused("failed", "part-000.parquet", "No space left"):
            run_batch(ScoreWork(faq), shards, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    assert run_batch(ScoreWork(faq), shards, tmp_path / "out").rows == 120


def test_want_of_memory_is_told_of_its_shard(
    shards: Path, faq: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Collection.score

    def greedy(self: Collection, pairs: Any, *given: Any, **options: Any) -> Any:
        if "number 60 " in pairs[0].query:
            raise MemoryError
        return own(self, pairs, *given, **options)

    monkeypatch.setattr(Collection, "score", greedy)
    with refused("failed", shards / "part-002.parquet", "MemoryError"):
        run_batch(ScoreWork(faq), shards, tmp_path / "out")
    assert len(read_folder(tmp_path / "out")) == 3


def test_want_of_memory_is_no_damage(shards: Path, faq: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*_: Any, **__: Any) -> Any:
        raise pa.lib.ArrowMemoryError("malloc of size 1080000064 failed")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", greedy)
    with refused("failed", shards / "part-000.parquet", "too little memory", "malloc of size") as found:
        run_batch(ScoreWork(faq), shards, tmp_path / "out")
    assert "cut off" not in str(found.value)


def test_two_runs_into_one_folder(shards: Path, faq: str, tmp_path: Path) -> None:
    with artifact.writing(tmp_path / "out"), refused("busy", tmp_path / "out"):
        run_batch(ScoreWork(faq), shards, tmp_path / "out")


def test_what_cannot_be_done(shards: Path, faq: str, tmp_path: Path) -> None:
    with refused("wrong_format", tmp_path):
        run_batch(ScoreWork(faq), tmp_path, tmp_path / "out")
    with refused("conflict", shards):
        run_batch(ScoreWork(faq), shards, shards)
    with refused("unknown_name", "spark"):
        run_batch(ScoreWork(faq), shards, tmp_path / "out", engine="spark")
    with refused("conflict", "address"):
        run_batch(ScoreWork(faq), shards, tmp_path / "out", address="auto")
    with refused("no_data", "bm25"):
        run_batch(ScoreWork("bm25"), shards, tmp_path / "out")


def test_commands_work_by_shards(shards: Path, faq: str, tmp_path: Path, run: Run) -> None:  # noqa: F811
    out = str(tmp_path / "out")
    assert "120 rows" in run("score", faq, str(shards), "--engine", "local", "--out", out).out
    assert "4 of them already finished" in run("score", faq, str(shards), "--engine", "local", "--out", out).out
    mined = run(
        "mine", str(shards), "--engine", "local", "--count", "2", "--top", "9", "--out", str(tmp_path / "mined")
    )
    assert "360 rows" in mined.out
    assert "--out" in error_of(run("score", faq, str(shards), "--engine", "local"))
    assert "--engine" in error_of(run("score", faq, str(shards), "--address", "auto"))
