"""An archive in an object store: what one in a folder does, and what a store does in error. Needs moto's server."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from matchloom import Collection, Pair, load
from matchloom.batch.indexing import IndexWork, index_shards
from matchloom.search.lance import home
from matchloom.search.lance.collection import LanceCollection
from matchloom.types import ErrorCode
from tests.batch.making import make_shards
from tests.cli.conftest import Run, error_of, run  # noqa: F401
from tests.moto import needs_moto, port, uri_of  # noqa: F401
from tests.publishing.proxy import Proxy
from tests.refusing import refused

pytestmark = [pytest.mark.slow, needs_moto]

PAIRS = [
    Pair(f"how is thing{n} made?", f"thing{n} is pressed from kind {n % 7}", query_id=f"q{n}", text_id=f"t{n}")
    for n in range(60)
]


def test_it_does_what_a_folder_does(port: int, tmp_path: Path) -> None:  # noqa: F811
    from tests.service.making import make_matcher

    make_matcher("lstm_rnn").save(tmp_path / "matcher")
    uri = uri_of(port, "same")
    there, here = (LanceCollection.create(where, tmp_path / "matcher") for where in (uri, tmp_path / "here"))
    for index in (there, here):
        assert index.add(PAIRS).new == 60
        assert index.add(PAIRS[:5]).replaced == 5
        assert index.remove(["q7/t7", "t8"]) == 2
        assert index.unknown(["t7", "t9"]) == ["t7"]
    assert len(there) == len(here) == 58
    asked = ["how is thing9 made?", "what is thing3"]
    assert [[hit[:3] for hit in hits] for hits in there.search(asked)] == [
        [hit[:3] for hit in hits] for hits in here.search(asked)
    ]
    judged = [Pair(f"how to make thing{n}", PAIRS[n + k].text, label=int(not k)) for n in range(10, 20) for k in (0, 1)]
    assert there.tune(judged).alpha == here.tune(judged).alpha == LanceCollection.open(uri).alpha
    for index in (there, here):
        index.reencode(tmp_path / "matcher")
        index.compact()
        assert len(index) == 58
    opened = load(uri)
    assert isinstance(opened, LanceCollection)
    assert [hit.id for hit in opened.search(asked[0])] == [hit.id for hit in here.search(asked[0])]
    assert Collection.check(uri)
    assert opened.folder == "s3://bucket/same"  # no word of the key
    with refused("exists", "s3://bucket/same"):
        LanceCollection.create(uri)
    with refused("not_supported", "repair"):
        LanceCollection.repair(uri)


def test_four_writers_lose_nothing_and_a_reader_follows(port: int) -> None:  # noqa: F811
    uri = uri_of(port, "writers")
    LanceCollection.create(uri).add(PAIRS[:1])
    reader, wrong = LanceCollection.open(uri), []

    def write(number: int) -> None:
        index = LanceCollection.open(uri)
        for n in range(5):
            index.add([Pair("all write this", f"answer {number}", query_id="shared"), PAIRS[1 + number * 5 + n]])
            if reader.search("how is thing0 made?", top=1)[0].id != "q0/t0":
                wrong.append(n)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    index = LanceCollection.open(uri)
    found = [row["key"] for batch in index.snapshot().store.batches(100, ["key"]) for row in batch.to_pylist()]
    assert sorted(found) == sorted(["q0/t0", *(f"q{n}/t{n}" for n in range(1, 21)), "shared"])
    assert Collection.check(uri)


def test_a_reader_sees_a_write_after_its_poll(port: int, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    uri = uri_of(port, "poll")
    index = LanceCollection.create(uri)
    index.add(PAIRS[:3])
    monkeypatch.setattr(home, "POLL", 3600.0)
    late = LanceCollection.open(uri)
    monkeypatch.setattr(home, "POLL", 0.0)
    soon = LanceCollection.open(uri)
    index.add(PAIRS[3:6])
    assert (len(soon), len(late)) == (6, 3)


@pytest.mark.parametrize("mode", ["busy", "cut"])
def test_a_store_in_error_is_one_line_and_nothing_half_written(port: int, mode: str, tmp_path: Path) -> None:  # noqa: F811
    proxy = Proxy(port)
    own = int(proxy.url.rpartition(":")[2])
    uri, name = uri_of(own, f"errors-{mode}"), f"s3://bucket/errors-{mode}"
    index = LanceCollection.create(uri)
    index.add(PAIRS[:10])
    proxy.mode, proxy.cut = mode, 3_000
    reason: tuple[ErrorCode, str] = ("unreadable", "503") if mode == "busy" else ("failed", "connection")
    with refused(reason[0], name, reason[1]):
        index.add(PAIRS[10:])
    if mode == "busy":  # what a new archive writes is too little to be cut
        with refused("failed", f"{name}-new", "503"):
            LanceCollection.create(uri.replace(f"errors-{mode}", f"errors-{mode}-new"))
    shards = make_shards(tmp_path / "pairs", rows=300)
    built = uri_of(own, f"built-{mode}")
    with refused(reason[0], f"s3://bucket/built-{mode}"):
        index_shards(built, IndexWork(), shards, tmp_path / "rows")
    proxy.mode = "pass"
    assert len(LanceCollection.open(uri)) == 10
    index.add(PAIRS[10:])
    assert len(LanceCollection.open(uri)) == 60
    assert Collection.check(uri)
    assert index_shards(built, IndexWork(), shards, tmp_path / "rows").new == 1200
    assert len(LanceCollection.open(built)) == 1200
    proxy.mode, proxy.seconds = "slow", 0.05
    assert len(LanceCollection.open(uri)) == 60
    proxy.close()


def test_a_build_that_loses_its_store_in_the_middle_leaves_no_archive(
    port: int,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from matchloom.batch import indexing

    proxy = Proxy(port)
    uri = uri_of(int(proxy.url.rpartition(":")[2]), "middle")
    shards = make_shards(tmp_path / "pairs", rows=300)
    whole = indexing._rows_of

    def lose(*given: object) -> object:
        proxy.mode = "busy"
        yield from whole(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(indexing, "_rows_of", lose)
    with refused("failed", "s3://bucket/middle", "503"):
        index_shards(uri, IndexWork(), shards, tmp_path / "rows")
    proxy.mode = "pass"
    monkeypatch.setattr(indexing, "_rows_of", whole)
    assert index_shards(uri, IndexWork(), shards, tmp_path / "rows").new == 1200
    assert len(LanceCollection.open(uri)) == 1200
    proxy.close()


def test_commands(port: int, tmp_path: Path, run: Run) -> None:  # noqa: F811
    uri, shards = uri_of(port, "commands"), make_shards(tmp_path / "pairs")
    rows = tmp_path / "rows"
    done = run("index", uri, shards, "--store", "lance", "--engine", "local", "--rows", rows, "--json")
    assert done.code == 0, done
    assert json.loads(done.out)["added"] == 120
    assert "a loom makes" in run("search", uri, "what is a loom number 0 for?").out
    assert run("add", uri, "--question", "Norway?", "--answer", "within a week", "--id", "norway").code == 0
    assert "within a week" in run("search", uri, "norway").out
    assert run("remove", uri, "norway").code == 0
    assert run("doctor", uri).code == 0
    assert json.loads(run("index", uri, "--json").out)["pairs"] == 120
    told = error_of(run("search", uri_of(port, "nothing"), "norway"))
    assert "s3://bucket/nothing" in told
    assert "secret" not in told
    assert "--store lance" in error_of(run("index", uri_of(port, "files"), shards))
    missing = error_of(run("index", uri.replace("@bucket", "@nobucket"), shards, "--store", "lance"))
    assert "s3://nobucket/commands" in missing
