"""`matchloom reproduce`: a published experiment that needs no data, from training to its figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from matchloom.cli.printing import console, note, table
from matchloom.data.corpora.lcs import lcs_path, lcs_table
from matchloom.matcher import Matcher
from matchloom.plots import check_plot, new_figure, save_plot
from matchloom.progress import track
from matchloom.simulation import NORMALISER, Scan, check, scans, train_lcs
from matchloom.types import MatchloomError, Pair

EXPERIMENTS = ("lcs",)
LONGER = (20, 30, 50)


def command(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="Which experiment: lcs.", show_default=False)],
    first: Annotated[str, typer.Option(metavar="LETTERS", help="First string of the figure.")] = "ABCDE",
    second: Annotated[str, typer.Option(metavar="LETTERS", help="Second string of the figure.")] = "FACGD",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the figure as .png, .svg or .pdf.", show_default=False),
    ] = None,
    matcher: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Use the network that an earlier --out saved.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Save the network here.", show_default=False)
    ] = None,
    pairs: Annotated[int, typer.Option(min=2, help="Pairs of strings to train on.")] = 10_000,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over them.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the strings and the network.")] = 0,
) -> None:
    """Repeat a published experiment that needs no data.

    lcs: Match-SRNN learns the longest common subsequence of two strings (Wan et al. 2016, section 5). It is trained on
    10,000 pairs of strings of up to 10 letters, with the length of their longest common subsequence. Its lengths and
    paths are then compared with those of dynamic programming on 1,000 new pairs, and on longer strings than those of
    the training. Finally the paper's Figure 4 is shown for two strings of your choice. It takes about a minute.

    \b
    Examples:
      matchloom reproduce lcs
      matchloom reproduce lcs --first GATTACA --second CATGATCA --plot lcs.png
    """
    if experiment not in EXPERIMENTS:
        raise MatchloomError(f"experiment {experiment!r} is unknown; choose one of {', '.join(EXPERIMENTS)}")
    for name, letters in (("--first", first), ("--second", second)):
        if not letters or len(letters) > 60 or any(letter.isspace() for letter in letters):
            raise MatchloomError(f"{name} needs 1 to 60 letters without spaces, found {letters!r}")
    if plot is not None:
        check_plot(plot)
    if matcher is not None:
        network = Matcher.load(matcher)
        expected = {"interaction": "indicator", "dimensions": 1, "reset": False}
        if network.name != "match_srnn" or network.arguments != expected:
            raise MatchloomError(f"{matcher} holds no network of this experiment; make one with --out")
    else:
        note(f"Training on {pairs:,} pairs of strings, {epochs} epochs.")
        network = train_lcs(pairs=pairs, epochs=epochs, seed=seed, progress=True)
        if out is not None:
            network.save(out)
            note(f"The network is in {out}.")
    compare(network, seed)
    pair = Pair(" ".join(first), " ".join(second))
    scan = scans(network, [pair])[0]
    print_figure(pair, scan)
    if plot is not None:
        draw_figure(pair, scan, plot)
        note(f"{plot} is written.")


def compare(network: Matcher, seed: int) -> None:
    """The table beside the dynamic programme's, which is right by definition."""
    rows = table(
        "strings of up to", "pairs", "length right", "mean error", "path is an LCS", right=("pairs", "length right",
        "mean error", "path is an LCS"),
    )  # fmt: skip
    for longest in track((NORMALISER, *LONGER), "comparing with the dynamic programme"):
        # New strings: the seeds of training and comparing differ.
        found = check(network, longest=longest, seed=seed + 1_000_003)
        rows.add_row(
            f"{longest} letters",
            f"{found.pairs:,}",
            f"{found.lengths_right:.1%}",
            f"{found.error:.3f}",
            f"{found.paths_right:.1%}",
        )
    print(f"\nAgainst the dynamic programme on new strings (trained on up to {NORMALISER} letters):\n")
    console().print(rows)


def panels(pair: Pair, scan: Scan) -> list[tuple[str, list[list[str]], list[tuple[int, int]]]]:
    """Figure 4: titles, what stands in the cells, and the path."""
    a, b = pair.query.split(), pair.text.split()
    gates = [
        [" ".join(f"{gate:.1f}" for gate in cell) for cell in row] for row in scan.gates.transpose(1, 2, 0).tolist()
    ]
    return [
        ("(a) dynamic programme", [[str(value) for value in row] for row in lcs_table(a, b)], lcs_path(a, b)),
        ("(b) Match-SRNN", [[f"{value:.1f}" for value in row] for row in scan.lengths.tolist()], scan.path),
        ("(c) its gates: left, top, diagonal", gates, scan.path),
    ]


def print_figure(pair: Pair, scan: Scan) -> None:
    """Figure 4 in the terminal; the cells of a path stand in brackets."""
    printer = console()
    for title, values, path in panels(pair, scan):
        printer.print(f"\n{title}")
        printer.print(_grid(pair.query.split(), pair.text.split(), values, path))


def _grid(a: Sequence[str], b: Sequence[str], values: list[list[str]], path: list[tuple[int, int]]) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_header=False)
    for _ in range(len(b) + 1):
        made.add_column(justify="right", no_wrap=True)
    made.add_row("", *(Text(letter, "bold") for letter in b))
    for i, letter in enumerate(a):
        cells = [Text(f"[{x}]", "bold reverse") if (i, j) in path else Text(f"{x} ") for j, x in enumerate(values[i])]
        made.add_row(Text(letter, "bold"), *cells)
    return made


def draw_figure(pair: Pair, scan: Scan, plot: Path) -> None:
    """Figure 4 as a picture."""
    from matplotlib.patches import Rectangle

    a, b = pair.query.split(), pair.text.split()
    size = 0.62
    figure = new_figure(2.6 + 3.6 * size * len(b), 1.2 + size * len(a))
    axes = figure.subplots(1, 3, width_ratios=(1, 1, 1.6))
    for ax, (title, values, path) in zip(axes, panels(pair, scan), strict=True):
        ax.set(xlim=(-0.5, len(b) - 0.5), ylim=(len(a) - 0.5, -0.5), title=title)
        ax.set_xticks(range(len(b)), b)
        ax.set_yticks(range(len(a)), a)
        ax.tick_params(length=0, top=True, bottom=False, labeltop=True, labelbottom=False)
        for i in range(len(a)):
            for j in range(len(b)):
                grey = "0.78" if (i, j) in path else "white"
                box = Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=grey, edgecolor="0.6", linewidth=0.6, clip_on=False)
                ax.add_patch(box)
                ax.text(j, i, values[i][j], ha="center", va="center", fontsize=8 if ax is axes[2] else 10)
        for spine in ax.spines.values():
            spine.set_visible(False)
    save_plot(figure, plot)
