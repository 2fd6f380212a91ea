"""Match-SRNN learns the longest common subsequence (Wan et al., IJCAI 2016, section 5).

With the indicator as interaction, one dimension and no reset gates, the spatial GRU can compute what the dynamic
programme computes, c[i, j] = max(c[i, j-1], c[i-1, j], c[i-1, j-1] + [x_i = y_j]). It is told only the length that
whole strings have in common; the cells and the path are its own. Adam trains it, where the paper has AdaGrad and gives
no rate; the strings are 1 to 10 letters long, which the paper does not say either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from matchloom.data.batching import make_batch
from matchloom.data.corpora.lcs import is_lcs, lcs_pairs
from matchloom.layers.spatial_gru import matching_path
from matchloom.matcher import Matcher
from matchloom.models.match_srnn import MatchSRNN
from matchloom.text.tokenize import Tokenizer
from matchloom.training import TrainConfig, train
from matchloom.types import Pair

# The paper only says "normalized": the longest training string makes all lengths 0 to 1.
NORMALISER = 10
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


def train_lcs(
    *,
    pairs: int = 10_000,
    epochs: int = 100,
    seed: int = 0,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    progress: bool = False,
) -> Matcher:
    """Train Match-SRNN on strings of up to 10 letters and the length of what they have in common."""
    drawn = lcs_pairs(pairs, max_length=NORMALISER, seed=seed)
    return train(
        [pair._replace(label=(pair.label or 0.0) / NORMALISER) for pair in drawn],
        model="match_srnn",
        arguments={"interaction": "indicator", "dimensions": 1, "reset": False},
        config=TrainConfig(loss="squared_error", optimizer="adam", learning_rate=0.01, epochs=epochs, seed=seed),
        tokenizer=Tokenizer("whitespace", lower=False),
        on_epoch=on_epoch,
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
    """Compare with the dynamic programme on newly drawn pairs of strings of up to `longest` letters."""
    drawn = lcs_pairs(pairs, max_length=longest, seed=seed)
    true = np.array([pair.label for pair in drawn])
    found = scans(matcher, drawn)
    ends = np.array([scan.lengths[-1, -1] for scan in found])
    right = 0
    for pair, scan in zip(drawn, found, strict=True):
        a, b = pair.query.split(), pair.text.split()
        right += is_lcs(a, b, matches(a, b, scan.path))
    agree = float((np.rint(ends) == true).mean())
    return Checked(longest, pairs, agree, float(np.abs(ends - true).mean()), right / pairs)
