"""`matchloom reproduce lcs`: the network, how often it agrees with the dynamic programme, and the paper's Figure 4."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from experiments.reproduction import lcs
from matchloom.basics.plots import check_plot
from matchloom.basics.progress import track
from matchloom.cli.printing import console, note, table
from matchloom.matcher import Matcher
from matchloom.types import MatchloomError, Pair

_WIDE = 1000  # letters on a line of the figure, which is not cut: gates take 14 for each letter of the second string


def reproduce_lcs(
    *,
    first: str,
    second: str,
    plot: Path | None,
    matcher: Path | None,
    out: Path | None,
    pairs: int,
    epochs: int,
    seed: int,
) -> None:
    """Train the network, or read it from `matcher`; compare and show. The arguments are the command's options."""
    for name, letters in (("--first", first), ("--second", second)):
        if not letters or len(letters) > 60 or any(letter.isspace() for letter in letters):
            raise MatchloomError(f"{name} needs 1 to 60 letters without spaces, found {letters!r}")
    if plot is not None:
        check_plot(plot)
    if matcher is not None:
        network = Matcher.load(matcher)
        if network.name != "match_srnn" or not network.arguments.items() >= lcs.ARGUMENTS.items():
            raise MatchloomError(f"{matcher} holds no network of this experiment; make one with --out")
    else:
        note(f"Training on {pairs:,} pairs of strings, {epochs} epochs.")
        network = lcs.train_lcs(pairs=pairs, epochs=epochs, seed=seed, progress=True)
        if out is not None:
            network.save(out)
            note(f"The network is in {out}.")
    columns = ("pairs", "length right", "mean error", "path is an LCS")
    shown = table("strings of up to", *columns, right=columns)
    for longest in track((lcs.NORMALISER, *lcs.LONGER), "comparing with the dynamic programme"):
        found = lcs.check(network, longest=longest, seed=seed)
        shares = (f"{found.lengths_right:.1%}", f"{found.error:.3f}", f"{found.paths_right:.1%}")
        shown.add_row(f"{longest} letters", f"{found.pairs:,}", *shares)
    print(f"\nAgainst the dynamic programme on new strings (trained on up to {lcs.NORMALISER} letters):\n")
    console().print(shown)
    pair = Pair(" ".join(first), " ".join(second))
    panels = lcs.figure_4(pair, lcs.scans(network, [pair])[0])
    print_figure(first, second, panels)
    if plot is not None:
        lcs.draw(first, second, panels, plot)
        note(f"{plot} is written.")


def print_figure(a: str, b: str, panels: list[lcs.Panel]) -> None:
    """Figure 4 in the terminal; the cells of a path stand in brackets."""
    printer = console()
    printer.width = _WIDE
    for title, cells, path in panels:
        columns = [f"{n}" for n in range(len(b) + 1)]
        grid = table(*columns, right=tuple(columns))
        grid.show_header = False
        grid.padding = (0, 1, 0, 0)
        grid.add_row("", *(Text(letter, "bold") for letter in b))
        for i, letter in enumerate(a):
            marked = (Text(f"[{x}]", "bold reverse") if (i, j) in path else f"{x} " for j, x in enumerate(cells[i]))
            grid.add_row(Text(letter, "bold"), *marked)
        printer.print(f"\n{title}")
        printer.print(grid)
