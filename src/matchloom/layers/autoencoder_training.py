"""A recursive autoencoder learns to unfold the trees of texts again, without labels (Socher et al., 2011)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from matchloom.basics.parallel import thread_pool
from matchloom.basics.progress import track
from matchloom.batches import Texts
from matchloom.data.batching import pad_texts
from matchloom.data.tokenized import Rows, TokenizedTexts
from matchloom.layers.recursive_autoencoder import RecursiveAutoencoder

BATCH = 128  # texts of one step


def train_autoencoder(
    autoencoder: RecursiveAutoencoder,
    encode: Callable[[Texts], Tensor],
    tables: tuple[TokenizedTexts, ...],
    rng: np.random.Generator,
    *,
    epochs: int,
    learning_rate: float,
    decay: float,
    progress: bool = False,
) -> None:
    """Lower the mean E_rec of the texts by Adam, in batches of nearly equal length; threads share each batch.

    `encode` gives the vector of every word, which stays as it is. Afterwards the autoencoder is fixed.
    """
    parameters = list(autoencoder.requires_grad_().parameters())
    optimizer = torch.optim.Adam(parameters, lr=learning_rate, weight_decay=decay)
    threads, device = torch.get_num_threads(), parameters[0].device

    def work(table: TokenizedTexts, rows: Rows) -> tuple[Tensor, ...]:
        texts = pad_texts(table, rows).to(device)
        error = autoencoder.unfolding_error(encode(texts).detach(), texts.lengths)
        return torch.autograd.grad(error, parameters)

    with thread_pool(threads) as pool:
        for number in range(epochs):
            batches = [(table, rows) for table in tables for rows in _batches(table, rng)]
            order = rng.permutation(len(batches)).tolist()
            for n in track(order, f"autoencoder, epoch {number + 1} of {epochs}", show=progress):
                table, rows = batches[n]
                shards = [rows[w::threads] for w in range(min(threads, len(rows)))]
                found = pool.map(work, [table] * len(shards), shards)
                for parameter, *gradients in zip(parameters, *found, strict=True):
                    parameter.grad = torch.stack(gradients).sum(0) / len(rows)
                optimizer.step()
    autoencoder.requires_grad_(False).zero_grad()


def _batches(table: TokenizedTexts, rng: np.random.Generator) -> Iterator[Rows]:
    """The texts ordered by length, those of one length at random, and cut. A single word makes no tree."""
    order = rng.permutation(np.flatnonzero(table.lengths > 1))
    order = order[np.argsort(table.lengths[order], kind="stable")]
    for i in range(0, len(order), BATCH):
        yield order[i : i + BATCH]
