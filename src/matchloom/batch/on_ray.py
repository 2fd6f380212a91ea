"""Shards on Ray Data: actors that load what the work needs once, each busy with one shard at a time.

What is passed around is the name of a shard and how many rows it became: rows go from file to file. A shard is written
whole under its own name, so that one that Ray does twice, because a machine was lost, is there once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from matchloom.basics.extras import need
from matchloom.basics.files import make_folder
from matchloom.batch.shards import Job, ShardDone, do_shard
from matchloom.batch.works import Work
from matchloom.types import MatchloomError

# Ray Data waits in silence for a processor of its own where actors have taken every one.
_CPUS = 0.5  # of an actor


TRIES = 3  # workers that a shard may cost


def _tries(shard: Job) -> Path:
    """A byte for each worker that began the shard; it goes when one has ended it."""
    target = Path(shard.target)
    return target.with_name(f".{target.name}.tries")


def _begun(shard: Job) -> int:
    """How often the shard was begun, this time included. Ray would give a shard that kills its worker to the next one,
    for ever."""
    path = _tries(shard)
    make_folder(path.parent)
    with path.open("ab") as file:
        file.write(b".")
    return path.stat().st_size


class _Actor:
    """A process that does shards."""

    def __init__(self, work: Work) -> None:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        try:
            import torch

            torch.set_num_threads(1)  # one processor an actor: as many actors as processors
        except ModuleNotFoundError:
            pass
        self._work, self._function, self._problem = work, None, None
        try:
            self._function = work.open()
        except MatchloomError as error:  # it would be the same in every actor: nothing is gained by another try
            self._problem = str(error)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        shard = Job(row["source"], row["target"], (row["bytes"], row["time"], row["inode"]), row["digest"])
        if self._function is None:
            done = ShardDone(shard.source, 0, self._problem)
        elif _begun(shard) > TRIES:
            why = f"{TRIES} workers were lost while they did it, perhaps for want of memory; give smaller shards"
            done = ShardDone(shard.source, 0, f"{shard.source}: {why}")
        else:
            done = do_shard(self._function, shard, self._work.whole)
        _tries(shard).unlink(missing_ok=True)
        return {"source": done.source, "rows": done.rows, "problem": done.problem or ""}


def do_on_ray(work: Work, todo: Sequence[Job], address: str | None) -> Iterator[ShardDone]:
    """Do shards on a cluster that is there, on the one at an address, or on processes of this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
    ray = need("ray", "the engine ray")
    data = need("ray.data", "the engine ray")
    mine = not ray.is_initialized()
    if mine:
        try:
            ray.init(address=address or "local", include_dashboard=None if address else False, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise MatchloomError(
                f"no Ray cluster answers at {address!r}: {' '.join(str(error).split())[:200]}", code="unreadable"
            ) from None
    try:
        for one in todo:
            _tries(one).unlink(missing_ok=True)  # of an earlier run
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        actors = max(1, min(len(todo), int(ray.cluster_resources().get("CPU", 1))))
        rows = [
            {
                "source": one.source,
                "target": one.target,
                "digest": one.digest,
                **dict(zip(("bytes", "time", "inode"), one.stamp, strict=True)),
            }
            for one in todo
        ]
        work_on = data.from_items(rows, override_num_blocks=len(rows)).map(
            _Actor,
            fn_constructor_args=(work,),
            compute=data.ActorPoolStrategy(size=actors),
            num_cpus=_CPUS,
        )
        try:
            for found in work_on.iter_rows():
                yield ShardDone(found["source"], int(found["rows"]), found["problem"] or None)
        except ray.exceptions.RayError as error:
            why = " ".join(str(error).split())[:300]
            raise MatchloomError(
                f"Ray gave up ({why}); what is finished stays: start again to go on", code="failed"
            ) from None
    finally:
        if mine:
            ray.shutdown()
