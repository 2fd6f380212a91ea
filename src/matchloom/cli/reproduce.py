"""`matchloom reproduce`: Match-SRNN learns the longest common subsequence (Wan et al., IJCAI 2016, section 5).

With the indicator as interaction, one dimension and no reset gates, the spatial GRU can compute what the dynamic
programme computes, c[i, j] = max(c[i, j-1], c[i-1, j], c[i-1, j-1] + [x_i = y_j]). It is told only the length that
whole strings have in common; the cells and the path are its own. Adam trains it, where the paper has AdaGrad and gives
no rate; the strings are 1 to 10 letters long, which the paper does not say either.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.text import Text

from matchloom.cli.printing import console, note, table
from matchloom.data.batching import make_batch
from matchloom.data.corpora.lcs import is_lcs, lcs_pairs, lcs_path, lcs_table
from matchloom.layers.spatial_gru import matching_path
from matchloom.matcher import Matcher
from matchloom.models import Argument
from matchloom.models.match_srnn import MatchSRNN
from matchloom.plots import check_plot, new_figure, save_plot
from matchloom.progress import track
from matchloom.text.tokenize import Tokenizer
from matchloom.training import TrainConfig, train
from matchloom.types import MatchloomError, Pair

ARGUMENTS: dict[str, Argument] = {"interaction": "indicator", "dimensions": 1, "reset": False}
NORMALISER = 10  # the paper only says "normalized": the longest training string makes all lengths 0 to 1
LONGER = (20, 30, 50)
_BATCH = 256
_WIDE = 1000  # letters on a line of the figure, which is not cut: gates take 14 for each letter of the second string

Cells = list[tuple[int, int]]


class Scan(NamedTuple):
    """What the network did with one pair: the length at every cell, the gates z_l, z_t, z_d, and the path."""

    lengths: NDArray[np.float32]  # (m, n)
    gates: NDArray[np.float32]  # (3, m, n)
    path: Cells


class Checked(NamedTuple):
    """How often the network agrees with the dynamic programme."""

    longest: int
    pairs: int
    lengths_right: float  # share of pairs whose rounded length is right
    error: float  # mean distance of the length from the true one
    paths_right: float  # share of pairs whose path is that of a longest common subsequence


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
    if experiment != "lcs":
        raise MatchloomError(f"experiment {experiment!r} is unknown; choose one of lcs")
    for name, letters in (("--first", first), ("--second", second)):
        if not letters or len(letters) > 60 or any(letter.isspace() for letter in letters):
            raise MatchloomError(f"{name} needs 1 to 60 letters without spaces, found {letters!r}")
    if plot is not None:
        check_plot(plot)
    if matcher is not None:
        network = Matcher.load(matcher)
        if network.name != "match_srnn" or not network.arguments.items() >= ARGUMENTS.items():
            raise MatchloomError(f"{matcher} holds no network of this experiment; make one with --out")
    else:
        note(f"Training on {pairs:,} pairs of strings, {epochs} epochs.")
        network = train_lcs(pairs=pairs, epochs=epochs, seed=seed, progress=True)
        if out is not None:
            network.save(out)
            note(f"The network is in {out}.")
    columns = ("pairs", "length right", "mean error", "path is an LCS")
    shown = table("strings of up to", *columns, right=columns)
    for longest in track((NORMALISER, *LONGER), "comparing with the dynamic programme"):
        found = check(network, longest=longest, seed=seed)
        shares = (f"{found.lengths_right:.1%}", f"{found.error:.3f}", f"{found.paths_right:.1%}")
        shown.add_row(f"{longest} letters", f"{found.pairs:,}", *shares)
    print(f"\nAgainst the dynamic programme on new strings (trained on up to {NORMALISER} letters):\n")
    console().print(shown)
    pair = Pair(" ".join(first), " ".join(second))
    panels = figure_4(pair, scans(network, [pair])[0])
    _print(first, second, panels)
    if plot is not None:
        _draw(first, second, panels, plot)
        note(f"{plot} is written.")


def train_lcs(*, pairs: int = 10_000, epochs: int = 100, seed: int = 0, progress: bool = False) -> Matcher:
    """Train Match-SRNN on strings of up to 10 letters and the length of what they have in common."""
    drawn = lcs_pairs(pairs, max_length=NORMALISER, seed=seed)
    return train(
        [pair._replace(label=(pair.label or 0.0) / NORMALISER) for pair in drawn],
        model="match_srnn",
        arguments=ARGUMENTS,
        config=TrainConfig(loss="squared_error", optimizer="adam", learning_rate=0.01, epochs=epochs, seed=seed),
        hold_out=0,
        tokenizer=Tokenizer("whitespace", lower=False),
        vectors="random",
        progress=progress,
    )


def scans(matcher: Matcher, pairs: Sequence[Pair]) -> list[Scan]:
    """Every cell of every pair."""
    model = matcher.model
    assert isinstance(model, MatchSRNN)
    weight, bias = float(model.head.weight.detach()[0, 0]), float(model.head.bias.detach()[0])
    found: list[Scan] = []
    for start in range(0, len(pairs), _BATCH):
        part = pairs[start : start + _BATCH]
        rows = np.arange(len(part))
        left, right = matcher.read([pair.query for pair in part]), matcher.read([pair.text for pair in part])
        batch = make_batch(left, right, rows, rows)
        with torch.inference_mode():
            grid = model.interact(model.encode(batch.left), model.encode(batch.right), batch)
            h, z = model.scans[0].scan(grid, batch.left.lengths, batch.right.lengths)  # type: ignore[operator]
        for b, (m, n) in enumerate(zip(batch.left.lengths.tolist(), batch.right.lengths.tolist(), strict=True)):
            lengths = NORMALISER * (weight * h[b, 0, :m, :n] + bias)
            gates = z[b, :, :, :m, :n]
            found.append(Scan(lengths.numpy(), gates[1:, 0].numpy(), matching_path(gates)))
    return found


def matches(a: Sequence[str], b: Sequence[str], path: Cells) -> Cells:
    """The matches on a path: cells with equal letters that it entered along the diagonal, or began with."""
    before = [None, *path]
    return [
        (i, j) for (i, j), last in zip(path, before, strict=False) if a[i] == b[j] and last in (None, (i - 1, j - 1))
    ]


def check(matcher: Matcher, *, pairs: int = 1000, longest: int = NORMALISER, seed: int) -> Checked:
    """Compare with the dynamic programme on new pairs of strings of up to `longest` letters; `seed` is training's."""
    drawn = lcs_pairs(pairs, max_length=longest, seed=seed + 1_000_003)
    true = np.array([pair.label for pair in drawn])
    found = scans(matcher, drawn)
    ends = np.array([scan.lengths[-1, -1] for scan in found])
    right = 0
    for pair, scan in zip(drawn, found, strict=True):
        a, b = pair.query.split(), pair.text.split()
        right += is_lcs(a, b, matches(a, b, scan.path))
    agree = float((np.rint(ends) == true).mean())
    return Checked(longest, pairs, agree, float(np.abs(ends - true).mean()), right / pairs)


class Panel(NamedTuple):
    """One of the three grids of the paper's Figure 4: its title, what its cells hold, and the path."""

    title: str
    cells: list[list[str]]
    path: Cells


def figure_4(pair: Pair, scan: Scan) -> list[Panel]:
    """The dynamic programme, the network and its gates."""
    a, b = pair.query.split(), pair.text.split()
    gates = [[" ".join(f"{z:.1f}" for z in cell) for cell in row] for row in scan.gates.transpose(1, 2, 0).tolist()]
    return [
        Panel("(a) dynamic programme", [[str(c) for c in row] for row in lcs_table(a, b)], lcs_path(a, b)),
        Panel("(b) Match-SRNN", [[f"{c:.1f}" for c in row] for row in scan.lengths.tolist()], scan.path),
        Panel("(c) its gates: left, top, diagonal", gates, scan.path),
    ]


def _print(a: str, b: str, panels: list[Panel]) -> None:
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


def _draw(a: str, b: str, panels: list[Panel], plot: Path) -> None:
    """Figure 4 as a picture; the cells of a path are grey."""
    figure = new_figure(2.6 + 2.2 * len(b), 1.2 + 0.62 * len(a))
    for ax, (title, cells, path) in zip(figure.subplots(1, 3, width_ratios=(1, 1, 1.6)), panels, strict=True):
        ax.set_title(title)
        drawn = ax.table(cells, rowLabels=list(a), colLabels=list(b), cellLoc="center", bbox=(0, 0, 1, 1))
        for i, j in path:
            drawn[i + 1, j].set_facecolor("0.78")  # row 0 holds the letters
        ax.axis("off")
    save_plot(figure, plot)
