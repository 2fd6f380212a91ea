"""On Ray: what one process makes, also where a machine is lost in the middle. Needs the extra `ray`."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from matchloom import Collection
from matchloom.batch.run import run_batch
from matchloom.batch.works import MineWork, ScoreWork
from tests.batch.making import make_shards, read_folder
from tests.refusing import refused

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]  # one cluster at a time


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        for _ in range(2):
            made.add_node(num_cpus=1)
        ray.init(address=made.address, log_to_driver=False)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


class Slow(ScoreWork):
    """Scores as they are, each shard in half a second: a machine can be lost in the middle of one."""

    def open(self) -> Any:
        score = super().open()

        def slowly(table: Any) -> Any:
            time.sleep(0.5)
            return score(table)

        return slowly


def test_a_lost_machine_loses_and_doubles_nothing(cluster: Any, tmp_path: Path) -> None:
    shards = make_shards(tmp_path / "pairs", shards=24, rows=50)
    Collection.create(tmp_path / "faq", shards / "part-000.parquet")
    lost: list[int] = []

    def lose() -> None:
        out = tmp_path / "ray"
        while not out.exists() or len(list(out.glob("*.parquet"))) < 4:
            time.sleep(0.05)
        lost.append(len(list(out.glob("*.parquet"))))
        cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)

    thread = threading.Thread(target=lose, daemon=True)
    thread.start()
    done = run_batch(Slow(str(tmp_path / "faq")), shards, tmp_path / "ray", engine="ray")
    thread.join(60)
    assert lost
    assert lost[0] < 24  # it was in the middle
    assert (done.shards, done.rows) == (24, 24 * 50)
    run_batch(ScoreWork(str(tmp_path / "faq")), shards, tmp_path / "one")
    assert read_folder(tmp_path / "ray") == read_folder(tmp_path / "one")
    assert [path.name for path in (tmp_path / "ray").iterdir() if path.suffix != ".parquet"] == []


def test_a_bad_shard_is_named_and_the_rest_kept(cluster: Any, tmp_path: Path) -> None:
    shards = make_shards(tmp_path / "pairs")
    one = shards / "part-002.parquet"
    content = one.read_bytes()
    one.write_bytes(content[:-30])
    work = MineWork(str(shards / "part-000.parquet"), count=2, top=9)
    with refused("failed", one):
        run_batch(work, shards, tmp_path / "ray", engine="ray")
    assert len(read_folder(tmp_path / "ray")) == 3
    one.write_bytes(content)
    assert run_batch(work, shards, tmp_path / "ray", engine="ray").skipped == 3
    run_batch(work, shards, tmp_path / "one")
    assert read_folder(tmp_path / "ray") == read_folder(tmp_path / "one")
    assert pq.read_table(tmp_path / "ray" / "part-002.parquet").num_rows == 90


class Greedy(ScoreWork):
    """Needs more memory than there is for one shard, and is killed by the system."""

    def open(self) -> Any:
        score = super().open()

        def greedily(table: Any) -> Any:
            if table["own"][0].as_py() == 30:
                os.kill(os.getpid(), signal.SIGKILL)
            return score(table)

        return greedily


def test_a_shard_that_costs_workers_is_named_and_the_rest_kept(cluster: Any, tmp_path: Path) -> None:
    shards = make_shards(tmp_path / "pairs")
    Collection.create(tmp_path / "faq", shards / "part-000.parquet")
    with refused("failed", shards / "part-001.parquet", "memory"):
        run_batch(Greedy(str(tmp_path / "faq")), shards, tmp_path / "ray", engine="ray")
    assert sorted(read_folder(tmp_path / "ray")) == [f"part-{n:03}.parquet" for n in (0, 2, 3)]
    assert [path.name for path in (tmp_path / "ray").iterdir() if path.suffix != ".parquet"] == []


def test_figures_and_archives_are_those_of_one_process(cluster: Any, tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    from matchloom.batch.indexing import IndexWork, index_shards
    from matchloom.batch.measuring import MeasureWork, evaluate_shards
    from matchloom.search.lance.collection import LanceCollection

    shards = make_shards(tmp_path / "pairs")
    for path in shards.iterdir():
        table = pq.read_table(path)
        pq.write_table(table.append_column("label", [[n % 3 for n in range(len(table))]]), path)
    work = MeasureWork("bm25", collection=str(shards / "part-000.parquet"))
    figures = [
        evaluate_shards(work, shards, tmp_path / engine, engine=engine, subset="all").to_dict()
        for engine in ("ray", "local")
    ]
    assert figures[0] == figures[1]
    hits = []
    for engine in ("ray", "local"):
        index_shards(tmp_path / f"{engine}.archive", IndexWork(), shards, tmp_path / "rows", engine=engine)
        hits.append(LanceCollection.open(tmp_path / f"{engine}.archive").search("what is a loom number 0 for?"))
    assert hits[0] == hits[1]


def test_what_no_actor_can_open_is_told_in_one_line(cluster: Any, tmp_path: Path) -> None:
    shards = make_shards(tmp_path / "pairs")
    with refused("failed", tmp_path / "nothing"):
        run_batch(ScoreWork(str(tmp_path / "nothing")), shards, tmp_path / "ray", engine="ray")
