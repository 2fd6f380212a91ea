"""`matchloom reproduce TABLE`, `all` and `--list`: what is said before, meanwhile and at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.reproduction.figures import draw_plots
from experiments.reproduction.page import results_page
from experiments.reproduction.results import Place, read_results
from experiments.reproduction.running import check_data, plan, reproduce, spoken, table_minutes
from experiments.reproduction.summary import order_lines, table_rows
from experiments.reproduction.tables import PaperTable, read_table, table_names
from matchloom.basics.files import atomic_write, make_folder
from matchloom.cli.printing import console, note, say, table
from matchloom.types import MatchloomError

_WIDE = 200  # a row of figures is not broken in a pipe


def print_list(data: Path | None) -> None:
    """Every table: what it is, where it was published, what it needs, its size."""
    shown = table("table", "what", "papers", "data", "rows", "runs", "about", right=("rows", "runs", "about"))
    for name in table_names():
        one = read_table(name)
        needs = ", ".join(_need(folder, data) for folder in one.folders) or "none needed"
        runs = sum(len(row.seeds) for row in one.rows)
        minutes, unknown = table_minutes(one)
        about = spoken(minutes) if unknown < len(one.rows) else "unknown"
        about += f" + {unknown} row{'' if unknown == 1 else 's'}" if 0 < unknown < len(one.rows) else ""
        shown.add_row(name, one.title, "; ".join(one.papers), needs, str(len(one.rows)), str(runs), about)
    printer = console()
    if not printer.is_terminal:
        printer.width = _WIDE
    printer.print(shown)
    say("\nTimes are those of the project's own runs; '+ 2 rows' are two that it has not run. lcs needs no data.")


def _need(folder: str, data: Path | None) -> str:
    return folder if data is None or (data / folder).is_dir() else f"{folder} (not in {data})"


def reproduce_table(
    name: str,
    data: Path | None,
    out: Path,
    *,
    only: str | None = None,
    seeds: Sequence[int] = (),
    fast: bool = False,
    again: bool = False,
    keep: bool = False,
) -> None:
    """One table, shown at the end. The arguments are the command's options."""
    one = read_table(name)
    planned = plan(one, out, only=only, seeds=seeds, fast=fast, again=again)
    if planned.to_do:
        check_data(one, data)  # before the plan is told
    for line in planned.lines():
        note(line)
    failed = reproduce(planned, data, again=again, keep=keep, tell=note)
    if fast:
        say(f"The manifests of the smoke run are in {planned.place.results}; its figures mean nothing.")
    else:
        _print_table(one, planned.place)
    _refuse_if(failed)


def reproduce_all(
    data: Path | None,
    out: Path,
    *,
    seeds: Sequence[int] = (),
    fast: bool = False,
    again: bool = False,
    keep: bool = False,
) -> None:
    """Every table whose data are there, and the page. The arguments are the command's options."""
    if data is None:
        raise MatchloomError("all needs --data DIR, the folder that holds the data sets; --list shows which")
    if not data.is_dir():
        raise MatchloomError(f"--data {data} is no folder")
    tables = [read_table(name) for name in table_names()]
    ready = [one for one in tables if not one.missing(data)]
    for one in tables:
        if one not in ready:
            note(f"{one.name} is left out: {data} does not hold {' and '.join(one.missing(data))}.")
    plans = [plan(one, out, seeds=seeds, fast=fast, again=again) for one in ready]
    for line in (line for planned in plans for line in planned.lines()):
        note(line)
    failed = 0
    for planned in plans:
        failed += reproduce(planned, data, again=again, keep=keep, tell=note)
    if fast:
        say(f"The manifests of the smoke run are in {out}; it makes no page.")
    else:
        write_page(out)
        say(f"The page is {out / 'results.md'}.")
    _refuse_if(failed)


def write_page(out: Path) -> None:
    """The page of a folder of results, and its figures."""
    make_folder(out)
    drawn = draw_plots(out, out / "figures")
    with atomic_write(out / "results.md") as file:
        file.write(results_page(out, drawn))


def _print_table(one: PaperTable, place: Place) -> None:
    done = read_results(place.results)
    if not any(done["systems"].get(row.name) for row in one.rows):
        return
    head, *rows = table_rows(one, done)
    shown = table(*head, right=tuple(head[1:]))
    for row in rows:
        shown.add_row(*row)
    printer = console()
    if not printer.is_terminal:
        printer.width = _WIDE
    say(one.title)
    say(f"{done['protocol']}\n")
    printer.print(shown)
    for line in order_lines(one, done):
        say(line)


def _refuse_if(failed: int) -> None:
    if failed:
        raise MatchloomError(f"{failed} run{'' if failed == 1 else 's'} failed, as said above; the others are done")
