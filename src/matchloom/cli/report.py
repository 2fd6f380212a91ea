"""`matchloom report`: a training or fit as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import matchloom
from matchloom.basics.files import atomic_write
from matchloom.basics.screen import printable
from matchloom.cli.options import ColumnsOption
from matchloom.cli.printing import console, note, table
from matchloom.cli.reading import parse_columns
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.runs import Run


def command(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A folder that 'train' or 'fit' writes.", show_default=False)
    ],
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page for a browser.", show_default=False)
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A training's development pairs: adds baselines, and its best and worst questions with reasons.",
            show_default=False,
        ),
    ] = None,
    columns: ColumnsOption = None,
) -> None:
    """Show a training or fit, also while it runs.

    Without --html the figures of each epoch are printed, or what a fit found. The page has the curves of loss and
    development figures, what the run was made with, and for a fit its whole report. 'matchloom serve --runs DIR' shows
    the same for every run of a folder, as it goes.

    \b
    Examples:
      matchloom report runs/faq
      matchloom report runs/faq --html run.html --dev data/dev.tsv
    """
    from matchloom.runs import measure_run, read_run, render_page
    from matchloom.runs.reading import FIT

    found = read_run(run)
    measured = None
    if dev is not None:
        if found.kind == FIT:
            raise MatchloomError("--dev is for trainings; the report of a fit has its own figures", code="conflict")
        pairs = list(matchloom.read_pairs(dev, columns=parse_columns(columns)))
        measured = measure_run(run, pairs, found.measure or "RR", progress=True)
    if html is not None:
        with atomic_write(html) as file:
            file.write(render_page(found, measured))
        note(f"{html} is written; open it in a browser")
        return
    _show(found)
    if measured is not None:
        console().print(measured.report)


def _show(run: Run) -> None:
    printer = console()
    printer.print(f"{printable(run.name)}: {run.kind}, {'running' if run.running else 'finished'}", style="bold")
    if run.report is not None:
        printer.print(run.report)
        return
    rows = run.log if run.log else [{"system": name, **values} for name, values in run.found.items()]
    names = list(rows[0]) if rows else []
    shown = table(*(name.replace("_", " ") for name in names), right=tuple(names))
    for row in rows:
        shown.add_row(*(_cell(row.get(name)) for name in names))
    printer.print(shown if rows else "nothing is measured yet")


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else printable(str(value))
