"""`matchloom reproduce`: the papers' tables, all of them on one page, or an experiment that needs no data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matchloom.types import MatchloomError

_OF_LCS = ("first", "second", "plot", "matcher", "pairs", "epochs", "seed")
_OF_TABLES = ("data", "only", "seeds", "fast", "again", "keep")
OUT = Path("runs/reproduced")


def command(
    context: typer.Context,
    table: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="A name that --list shows, all, or lcs.", show_default=False),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="Show every table, the data it needs and its time.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder that holds the data sets, one folder each.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=f"Where results go, {OUT} by default; for lcs, where its network is saved.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="ROW", help="The row of this name, or rows whose names contain it.", show_default=False),
    ] = None,
    seeds: Annotated[
        list[str] | None,
        typer.Option(metavar="N,N", help="These seeds instead of the table's, such as 0,1,2.", show_default=False),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="A smoke run of minutes: few queries, one epoch; no results.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Repeat runs that have results, and restart interrupted ones.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep every trained matcher.")] = False,
    first: Annotated[str, typer.Option(metavar="LETTERS", help="lcs: first string of the figure.")] = "ABCDE",
    second: Annotated[str, typer.Option(metavar="LETTERS", help="lcs: second string of the figure.")] = "FACGD",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="lcs: also write the figure as .png, .svg or .pdf.", show_default=False),
    ] = None,
    matcher: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="lcs: use the network that an earlier --out saved.", show_default=False),
    ] = None,
    pairs: Annotated[int, typer.Option(min=2, help="lcs: pairs of strings to train on.")] = 10_000,
    epochs: Annotated[int, typer.Option(min=1, help="lcs: epochs of the training.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="lcs: seed of the strings and the network.")] = 0,
) -> None:
    """Repeat a published table or experiment.

    Tables and experiments are in the folder experiments/ of the repository, not in the installed package: run this in a
    clone.

    With TABLE the command prepares the data by the paper's protocol, trains and measures every row, and shows our
    figures beside the published ones. Before it starts it prints what it will do and how long that took the project.
    For each row and seed it writes a manifest in OUT/TABLE.json (commit, digest of the data, all settings, seed,
    machine, time, figures) and the scores of every query in OUT/TABLE. Finished runs are not repeated; interrupted runs
    continue from their last epoch, so Ctrl-C loses at most one epoch. Several processes may share one OUT. A row gives
    the same scores each time, to the last bit.

    all runs every table whose data are in DIR, and writes the page OUT/results.md with its figures.

    lcs needs no data: Match-SRNN learns the longest common subsequence of two strings (Wan et al. 2016, section 5). It
    is trained on 10,000 pairs of strings of up to 10 characters, with the length of their longest common subsequence.
    Its lengths and paths are then compared with those of dynamic programming, on 1,000 new pairs and on longer strings.
    Finally the paper's Figure 4 is shown for two strings of your choice. It takes about a minute.

    \b
    Examples:
      matchloom reproduce --list --data data
      matchloom reproduce pydocs --fast
      matchloom reproduce qa --data data --only "MV-LSTM cosine, k = 5" --seeds 0,1,2
      matchloom reproduce all --data data --out runs/papers
      matchloom reproduce lcs --first GATTACA --second CATGATCA --plot lcs.png
    """
    if show_list:
        from experiments.cli.reproduce_tables import print_list

        print_list(data)
        return
    if table is None:
        raise MatchloomError("name a TABLE: one that --list shows, all, or lcs")
    stray = [name for name in (_OF_TABLES if table == "lcs" else _OF_LCS) if _given(context, name)]
    if stray:
        raise MatchloomError(
            f"--{stray[0]} cannot be used with {table}; it is for {'tables' if table == 'lcs' else 'lcs'}"
        )
    if table == "lcs":
        from experiments.cli.reproduce_lcs import reproduce_lcs

        size = {"pairs": pairs, "epochs": epochs, "seed": seed}
        reproduce_lcs(first=first, second=second, plot=plot, matcher=matcher, out=out, **size)
        return
    from experiments.cli.reproduce_tables import reproduce_all, reproduce_table

    if table == "all" and only is not None:
        raise MatchloomError("--only names a row of one table; give that table in place of all")
    numbers = _seeds(seeds or [])
    if table == "all":
        reproduce_all(data, out or OUT, seeds=numbers, fast=fast, again=again, keep=keep)
    else:
        reproduce_table(table, data, out or OUT, only=only, seeds=numbers, fast=fast, again=again, keep=keep)


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _seeds(given: list[str]) -> list[int]:
    words = " ".join(given).replace(",", " ").split()
    wrong = [word for word in words if not word.isdecimal() or not word.isascii() or int(word) >= 2**32]
    if wrong or (given and not words):
        raise MatchloomError(f"--seeds {wrong[0] if wrong else given[0]!r}: expected whole numbers, such as 0,1,2")
    return [int(word) for word in words]
