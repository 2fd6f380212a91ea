"""Do work shard by shard: in this process, or on Ray. What is finished stays, and is not done again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from matchloom import artifact
from matchloom.basics.files import make_folder, sweep_leftovers
from matchloom.basics.progress import track
from matchloom.basics.validation import one_path
from matchloom.batch.shards import Job, ShardDone, do_shard, find_jobs, is_done
from matchloom.batch.works import Work
from matchloom.types import MatchloomError

ENGINES = ("local", "ray")
Engine = Callable[[Work, Sequence[Job]], Iterator[ShardDone]]


class BatchDone(NamedTuple):
    """What was done."""

    shards: int
    skipped: int  # that were finished before
    rows: int  # that were written now
    jobs: tuple[Job, ...] = ()  # all of them

    @property
    def files(self) -> list[Path]:
        """What is there now, in the order of the shards."""
        return [Path(job.target) for job in self.jobs]


def run_batch(
    work: Work,
    source: Path | str,
    out: Path | str,
    *,
    engine: str = "local",
    address: str | None = None,
    progress: bool = False,
) -> BatchDone:
    """Do work on every row of Parquet shards. Each becomes a shard of the same name, in the same order of rows.

    A shard is written whole or not at all. One that was finished by the same work is not done again, so that a run that
    was stopped, killed or short of a machine is begun again and goes on. A shard that cannot be done is told in the
    end; the others are finished.

    Args:
        work: A `ScoreWork`, `MeasureWork`, `EncodeWork`, `IndexWork` or `MineWork`.
        source: A folder of Parquet files, or one file.
        out: The folder to write to; machines of a cluster must share it.
        engine: "local", in this process; or "ray".
        address: Of a Ray cluster, such as "auto" or "ray://head:10001"; without one Ray is started on this machine.
        progress: Whether to show a bar.
    """
    if engine not in ENGINES:
        raise MatchloomError(f"engine is {engine!r}; expected one of {', '.join(ENGINES)}", code="unknown_name")
    if address is not None and engine != "ray":
        raise MatchloomError(f"address is of a Ray cluster, found engine {engine!r}; leave it out", code="conflict")
    path, folder = one_path("source", source).resolve(), one_path("out", out).resolve()
    shards = find_jobs(path, folder, work.digest())
    make_folder(folder)
    with artifact.writing(folder):  # a second run into the same folder is refused
        todo = [shard for shard in shards if not is_done(shard)]
        does = _local if engine == "local" else _ray(address)
        done = list(track(does(work, todo) if todo else iter(()), "Shards", total=len(todo), show=progress))
        for one in {Path(shard.target).parent for shard in shards}:
            sweep_leftovers(one)  # of actors that were lost
    problems = [one.problem for one in done if one.problem is not None]
    if problems:
        more = f" (and {len(problems) - 1} more of {len(shards)} shards)" if len(problems) > 1 else ""
        raise MatchloomError(f"{problems[0]}{more}; the others are finished", code="failed")
    return BatchDone(len(shards), len(shards) - len(todo), sum(one.rows for one in done), tuple(shards))


def _local(work: Work, todo: Sequence[Job]) -> Iterator[ShardDone]:
    function = work.open()
    for shard in todo:
        yield do_shard(function, shard, work.whole)


def _ray(address: str | None) -> Engine:
    from matchloom.batch.on_ray import do_on_ray

    return lambda work, todo: do_on_ray(work, todo, address)
