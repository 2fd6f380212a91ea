"""An archive that is built by shards is the one that `add` makes; all of it is there, or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matchloom.batch import indexing
from matchloom.batch.indexing import IndexWork, index_shards
from matchloom.data.formats import read_pairs
from matchloom.search.lance.collection import LanceCollection
from matchloom.types import Added
from tests.batch.making import make_shards
from tests.cli.conftest import Run, error_of, run  # noqa: F401
from tests.refusing import refused


def rows_of(index: LanceCollection) -> list[dict[str, object]]:
    """All rows by key."""
    batches = index.snapshot().store.batches(1000)
    return sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: str(row["key"]))


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four shards; a fifth has pairs that replace earlier ones, one with label 0 and one shard has nothing else."""
    folder = make_shards(tmp_path_factory.mktemp("indexing") / "pairs")
    more = {"own": [0] * 4, "question": ["new?", "newer?", "newest?", "wrong?"], "answer": ["a", "b", "c", "d"]}
    ids = {"query_id": ["q3", "q100", "q3", "q9"], "label": pa.array([1, 1, 1, 0])}
    pq.write_table(pa.table({**more, **ids}), folder / "part-004.parquet")
    pq.write_table(pa.table({**more, **ids}).slice(3), folder / "part-005.parquet")
    return folder


@pytest.mark.parametrize("encoded", [False, True])
def test_shards_make_what_add_makes(shards: Path, encoded: bool, tmp_path: Path) -> None:
    matcher = None
    if encoded:
        from tests.service.making import make_matcher

        make_matcher("lstm_rnn").save(tmp_path / "matcher")
        matcher = str(tmp_path / "matcher")
    added = index_shards(tmp_path / "built", IndexWork(matcher), shards, tmp_path / "rows")
    plain = LanceCollection.create(tmp_path / "plain", matcher)
    assert plain.add(read_pairs(shards, fill_ids=False)) == added == Added(new=120, replaced=3, wrong=2)
    built = LanceCollection.open(tmp_path / "built")
    assert rows_of(built) == rows_of(plain)
    for question in ("what is a loom for?", "newest?", "forge number 5"):
        assert [hit.id for hit in built.search(question)] == [hit.id for hit in plain.search(question)]
    assert LanceCollection.check(tmp_path / "built", every_vector=True)
    assert not (tmp_path / "rows").exists()
    built.add([("one more?", "yes")])
    assert len(built) == 121
    versions = built.snapshot().store.version
    assert versions < 8  # shards are no commits


def test_equal_digests_of_keys_are_no_equal_keys(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_digest", lambda key: len(key))
    assert index_shards(tmp_path / "built", IndexWork(), shards, tmp_path / "rows").replaced == 3


def test_a_build_that_fails_leaves_nothing_and_goes_on(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = indexing._rows_of

    def full(*given: object) -> object:
        yield next(iter(whole(*given)))  # type: ignore[arg-type]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(indexing, "_rows_of", full)
    with refused("invalid", tmp_path / "built", "no space left"):
        index_shards(tmp_path / "built", IndexWork(), shards, tmp_path / "rows")
    assert not (tmp_path / "built").exists()
    assert len(list((tmp_path / "rows").glob("*.parquet"))) == 6  # they are not made again
    monkeypatch.setattr(indexing, "_rows_of", whole)
    assert index_shards(tmp_path / "built", IndexWork(), shards, tmp_path / "rows").new == 120
    with refused("exists", tmp_path / "built"):
        index_shards(tmp_path / "built", IndexWork(), shards, tmp_path / "rows")


def test_bad_shards_are_named(shards: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(shards, tmp_path / "pairs")
    one = tmp_path / "pairs" / "part-001.parquet"
    whole = one.read_bytes()
    one.write_bytes(whole[:-40])
    with refused("failed", one, "others are finished"):
        index_shards(tmp_path / "built", IndexWork(), tmp_path / "pairs", tmp_path / "rows")
    assert not (tmp_path / "built").exists()
    one.write_bytes(whole)
    assert index_shards(tmp_path / "built", IndexWork(), tmp_path / "pairs", tmp_path / "rows").new == 120


def test_command(shards: Path, tmp_path: Path, run: Run) -> None:  # noqa: F811
    built = tmp_path / "built"
    done = run("index", built, shards, "--store", "lance", "--engine", "local", "--json")
    assert done.code == 0, done
    assert json.loads(done.out)["added"] == 120
    assert not (tmp_path / "built.rows").exists()
    assert "a loom makes" in run("search", built, "what is a loom number 0 for?").out
    assert "--store lance" in error_of(run("index", tmp_path / "faq", shards, "--engine", "local"))
    assert "--rows" in error_of(run("index", tmp_path / "faq", shards, "--rows", tmp_path / "rows"))
    assert "--delete" in error_of(run("index", built, shards, "--engine", "local", "--delete", "q1"))
