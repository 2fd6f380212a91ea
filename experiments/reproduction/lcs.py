"""Match-SRNN learns the longest common subsequence (Wan et al., IJCAI 2016, section 5): `matchloom reproduce lcs`.

With the indicator as interaction, one dimension and no reset gates, the spatial GRU can compute what the dynamic
programme computes, c[i, j] = max(c[i, j-1], c[i-1, j], c[i-1, j-1] + [x_i = y_j]). It is told only the length that
whole strings have in common; the cells and the path are its own. Adam trains it, where the paper has AdaGrad and gives
no rate; the strings are 1 to 10 letters long, which the paper does not say either.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.corpora.lcs import is_lcs, lcs_pairs, lcs_path, lcs_table
from matchloom.basics.plots import new_figure, save_plot
from matchloom.data.batching import make_batch
from matchloom.layers.spatial_gru import matching_path
from matchloom.matcher import Matcher
from matchloom.models import Argument
from matchloom.models.match_srnn import MatchSRNN
from matchloom.text.tokenize import Tokenizer
from matchloom.training.config import TrainConfig
from matchloom.training.run import train
from matchloom.types import Pair

ARGUMENTS: dict[str, Argument] = {"interaction": "indicator", "dimensions": 1, "reset": False}
NORMALISER = 10  # the paper only says "normalized": the longest training string makes all lengths 0 to 1
LONGER = (20, 30, 50)
_BATCH = 256

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


def draw(a: str, b: str, panels: list[Panel], plot: Path) -> None:
    """Figure 4 as a picture; the cells of a path are grey."""
    figure = new_figure(2.6 + 2.2 * len(b), 1.2 + 0.62 * len(a))
    for ax, (title, cells, path) in zip(figure.subplots(1, 3, width_ratios=(1, 1, 1.6)), panels, strict=True):
        ax.set_title(title)
        drawn = ax.table(cells, rowLabels=list(a), colLabels=list(b), cellLoc="center", bbox=(0, 0, 1, 1))
        for i, j in path:
            drawn[i + 1, j].set_facecolor("0.78")  # row 0 holds the letters
        ax.axis("off")
    save_plot(figure, plot)
