"""A whole table: which runs are wanted, how long they take, and all of them, one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from experiments.reproduction.fast import fast_table, fast_task
from experiments.reproduction.provenance import machine
from experiments.reproduction.results import Entry, Place, Results, add_run, has_run, read_results, run_name
from experiments.reproduction.rows import Prepared, run_row
from experiments.reproduction.tables import PaperTable, Row
from experiments.reproduction.tasks import TASKS, PaperTask
from matchloom.artifact import try_lock
from matchloom.basics.files import make_folder
from matchloom.types import MatchloomError

MINUTES = Path(__file__).parent / "minutes.json"  # of the project's own runs; `make docs` writes it
_SHARED = {"python", "torch"}  # what the page says of the machine of a table

Tell = Callable[[str], None]


class SeededRow(NamedTuple):
    """A row with one of its seeds."""

    row: Row
    seed: int


class Plan(NamedTuple):
    """What is wanted of a table, and what of it is left to do."""

    table: PaperTable
    place: Place
    wanted: list[SeededRow]
    to_do: list[SeededRow]

    def lines(self) -> list[str]:
        """What will be done and how long that took elsewhere."""
        table, done = self.table, len(self.wanted) - len(self.to_do)
        runs = f"{len(self.wanted)} run{'' if len(self.wanted) == 1 else 's'}"
        have = f"{done} of {runs} done" if done else runs
        if not self.to_do:
            return [f"{table.name}: {runs}, done already, in {self.place.results}."]
        if self.place.fast:
            return [f"{table.name}: {have}, few queries and one epoch each; the figures of a smoke run mean nothing."]
        known = known_minutes(table.name)
        lines = []
        for row in dict.fromkeys(run.row.name for run in self.to_do):
            seeds = [run.seed for run in self.to_do if run.row.name == row]
            each = f"about {spoken(known[row])} each" if row in known else "nobody knows how long"
            lines.append(f"  {row}: seed{'s' if len(seeds) > 1 else ''} {_listed(seeds)}, {each}")
        total = sum(known.get(run.row.name, 0.0) for run in self.to_do)
        rows = {run.row.name for run in self.to_do}
        unknown = len(rows - known.keys())
        beside = f", and {unknown} row{'' if unknown == 1 else 's'} of unknown length" if unknown else ""
        took = f"about {spoken(total)} on the project's machine{beside}" if unknown < len(rows) else "time unknown"
        return [f"{table.name}: {have}, {took}.", *lines]


def plan(
    table: PaperTable,
    out: Path,
    *,
    only: str | None = None,
    seeds: Sequence[int] = (),
    fast: bool = False,
    again: bool = False,
) -> Plan:
    """What `reproduce` would do. The arguments are the command's options."""
    rows = table.rows if only is None else table.rows_named(only)
    chosen = replace(table, rows=tuple(replace(row, seeds=tuple(dict.fromkeys(seeds)) or row.seeds) for row in rows))
    chosen = fast_table(chosen) if fast else chosen
    place = Place(out, table.name, fast)
    done = read_results(place.results)
    wanted = [SeededRow(row, seed) for row in chosen.rows for seed in row.seeds]
    return Plan(chosen, place, wanted, [run for run in wanted if again or not has_run(done, run.row.name, run.seed)])


def reproduce(plan: Plan, data: Path | None, *, again: bool = False, keep: bool = False, tell: Tell = print) -> int:
    """Do what is left to do, and return how many runs failed; each leaves its manifest and its run file at once.

    Several processes may share the work: what another one is at, or has done meanwhile, is left out.

    Args:
        plan: What is wanted; nothing of it is in the way of another process.
        data: The folder of the data sets; None will do where a table needs none.
        again: Run what has results already.
        keep: Keep every matcher, in the folder of its run.
        tell: What says how it goes.
    """
    table, place = plan.table, plan.place
    if not plan.to_do:
        return 0
    check_data(table, data)
    make_folder(place.out / place.stem)
    tasks: dict[int, Prepared] = {}
    failed = 0
    for row, seed in plan.to_do:
        with try_lock(place.lock(row.name, seed)) as ours:
            if not ours:
                tell(f"{run_name(row.name, seed)}: another process is at it.")
                continue
            if not again and has_run(read_results(place.results), row.name, seed):
                continue
            split = seed if table.split_by_seed else 0
            if split not in tasks:
                tasks[split] = _prepared(table, data or Path(), split, place.fast)
            try:
                entry = run_row(row, table, tasks[split], seed, place, again=again, keep=keep)
            except MatchloomError as error:  # the other rows have nothing to do with it
                failed += 1
                tell(f"{run_name(row.name, seed)} failed: {error}")
                continue
            add_run(place.results, row.name, entry, _about(tasks[split].task, place))
        tell(f"{run_name(row.name, seed)}: {_told(entry, table, place)}{spoken(entry['minutes'])}.")
    return failed


def _told(entry: Entry, table: PaperTable, place: Place) -> str:
    """The development figure of a run, if it is one: a test figure seen now would have a part in the next choice."""
    first = table.measures[0]
    return "" if place.fast else f"development {first} {entry['development'][first]:.3f}, "


def check_data(table: PaperTable, data: Path | None) -> None:
    """Refuse what cannot be prepared, before anything is."""
    if table.task not in TASKS:
        raise MatchloomError(f"{table.name}: task {table.task!r} is unknown; choose one of {', '.join(TASKS)}")
    if data is None and table.folders:
        needs = " and ".join(table.folders)
        raise MatchloomError(f"{table.name} needs --data DIR, a folder that holds {needs}")
    missing = [] if data is None else table.missing(data)
    if missing:
        raise MatchloomError(f"{table.name} needs the folder {missing[0]} in {data}, which is not there")


def _prepared(table: PaperTable, data: Path, split: int, fast: bool) -> Prepared:
    task = TASKS[table.task](data, split)
    return Prepared.of(fast_task(task) if fast else task)


def _about(task: PaperTask, place: Place) -> Results:
    """What all runs of a table share."""
    return {
        "protocol": task.protocol,
        "sizes": {part: len(getattr(task, part)) for part in ("train", "development", "test")},
        "machine": {key: value for key, value in machine().items() if key in _SHARED},
        **({"fast": True} if place.fast else {}),
    }


@cache
def _all_minutes() -> dict[str, dict[str, float]]:
    return dict(json.loads(MINUTES.read_text(encoding="utf-8")))


def known_minutes(table: str) -> dict[str, float]:
    """How many minutes a run of each row took the project, where it has run it."""
    return _all_minutes().get(table, {})


def table_minutes(table: PaperTable) -> tuple[float, int]:
    """How many minutes all runs of a table took the project, and how many rows it has not run."""
    known = known_minutes(table.name)
    total = sum(known.get(row.name, 0.0) * len(row.seeds) for row in table.rows)
    return total, sum(row.name not in known for row in table.rows)


def spoken(minutes: float) -> str:
    """A time as people say it.

    >>> spoken(0.2), spoken(12.3), spoken(200)
    ('12 s', '12 min', '3 h 20 min')
    """
    if minutes < 1.5:
        return f"{max(1, round(60 * minutes))} s"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def _listed(seeds: Sequence[int]) -> str:
    """Seeds as a range where they are one.

    >>> _listed([0, 1, 2, 3]), _listed([0, 2])
    ('0 to 3', '0, 2')
    """
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
