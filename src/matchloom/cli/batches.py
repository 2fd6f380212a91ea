"""What the commands that work by shards have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from matchloom.cli.printing import say
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.batch.works import Work


def do_batch(work: Work, source: Path, out: Path | None, engine: str, address: str | None) -> None:
    """Do work by shards, and say what was done."""
    from matchloom.batch.run import run_batch

    done = run_batch(work, source, folder_of(out), engine=engine, address=address, progress=True)
    skipped = f", {done.skipped:,} of them already finished" if done.skipped else ""
    say(f"{out}: {done.shards:,} shards{skipped}; {done.rows:,} rows written")


def folder_of(out: Path | None) -> Path:
    """Where an engine writes its shards."""
    if out is None:
        raise MatchloomError("--engine writes shards: name a folder with --out", code="no_data")
    return out


def refuse_without_engine(address: str | None, **given: Any) -> None:
    """An address is a Ray cluster's; the others are for shards alone."""
    for name, value in given.items():
        if value is not None:
            raise MatchloomError(f"--{name} is for shards; it needs --engine", code="conflict")
    if address is not None:
        raise MatchloomError("--address names a Ray cluster; it needs --engine ray", code="conflict")


def refuse_with_engine(**given: Any) -> None:
    """Options that need all pairs in one process."""
    for name, value in given.items():
        if value is not None:
            raise MatchloomError(f"--{name} does not go with --engine; leave it out", code="conflict")
