"""The directions in which positions differ most: a projection that keeps their cosines without any training.

    C = mean over positions of x x', x of length one;  the projection has C's first eigenvectors as rows

It is not centred: cosines are not either. A rotation at the end leaves every cosine as it is and spreads what is large
in the first directions over all of them, which eight bits a number hold better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from matchloom.data.tokenized import TokenizedTexts
from matchloom.progress import track
from matchloom.types import Texts

TEXTS = 1000  # whose positions are looked at, some ten thousand
_BATCH = 32


def principal_directions(
    encode: Callable[[Texts], Tensor],
    read: Callable[[Texts], Tensor],
    tables: Sequence[TokenizedTexts],
    size: int,
    *,
    seed: int,
    device: torch.device,
    progress: bool = False,
) -> Tensor:
    """The `size` first directions of the positions that `encode` gives, of those that were `read`. (size, D)"""
    rng = np.random.default_rng(seed)
    rows = [(n, row) for n, table in enumerate(tables) for row in range(len(table))]
    kept = [rows[n] for n in sorted(rng.permutation(len(rows))[:TEXTS])]
    batches = []
    for n, table in enumerate(tables):
        own = np.array([row for of, row in kept if of == n], dtype=np.int64)
        own = own[np.argsort(table.read_lengths[own], kind="stable")]
        batches += [(table, own[start : start + _BATCH]) for start in range(0, len(own), _BATCH)]
    total: Tensor | float = 0.0
    with torch.no_grad():
        for table, cut in track(batches, "principal directions", show=progress):
            texts = table.pad(cut).to(device)
            x = normalize(encode(texts)[read(texts)].double(), dim=1)
            total = total + x.T @ x
    assert isinstance(total, Tensor)
    first = torch.linalg.eigh(total).eigenvectors[:, -size:].T
    generator = torch.Generator().manual_seed(seed)
    rotation: Tensor = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64)).Q
    return rotation.to(first.device) @ first
