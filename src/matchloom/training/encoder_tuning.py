"""The last layers of a pretrained encoder, tuned on known questions: those of one answer move closer to each other.

    u    = a text's vector behind the last layer, L2-normalised
    p_c  = softmax over the answers of  s cos(u, w_c)        w_c begins as the mean of what is known of answer c
    loss = - mean over the answers of a text of ln p_c

or on pairs that match or do not, whose cosines move apart:

    loss = - ln sigmoid(y (a cos(u, v) + b))                 y = 1 or -1; a and b learn, too

What the layers below make of a text does not change while the last ones learn, so it is computed once and kept. Nothing
is dropped out, and batches are drawn with a fixed seed: of the same texts in the same order the same layers come out,
however many cores there are. SetFit (Tunstall et al., 2022) tunes an encoder by pairs of questions before a classifier
learns from its vectors; on HWU64's development part a softmax over the answers was as good, in half the time.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax, normalize
from torch.nn.utils.rnn import pad_sequence

from matchloom.batches import Pieces
from matchloom.encoders.pooling import pooled
from matchloom.encoders.transformer import Transformer
from matchloom.training.adam import Adam
from matchloom.training.step import clip_gradients, rate_factor, set_rates

Rows = NDArray[np.int64]
Vectors = NDArray[np.float32]
LAYERS = 3  # that learn
RATE, PAIR_RATE, _DECAY, _CLIP, _WARMUP = 4e-4, 1.5e-4, 0.01, 1.0, 0.1
_FASTER = 20.0  # the rate of what learns beside the layers, which is far from where it ends
_SCALE = 20.0  # s
_PAIR_SCALE, _MEASURED = 10.0, 500  # a, to begin with; pairs whose median cosine b begins with
_BATCH, _BUCKET = 32, 16  # texts; batches whose texts are sorted by length, so that little padding is read
MOST = 48  # pieces of a text that are learnt from
_IN_MEMORY = 256 * 2**20  # bytes of what lies below; more is mapped
_AT_ONCE = 64  # texts that are read together


class LowerOutputs:
    """What the layers that stay as they are make of all pieces of some texts, end to end."""

    def __init__(self, encoder: Transformer, texts: Sequence[Sequence[int]], layers: int = LAYERS) -> None:
        """Read texts, as the numbers of their pieces, up to the last `layers` of the encoder."""
        below = max(0, len(encoder.layers) - layers)
        self.top, self.pooling = encoder.layers[below:], encoder.pooling
        ids = [torch.tensor(text) for text in texts]
        self.lengths = np.array([len(one) for one in ids], dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self.outputs = _empty((int(self.starts[-1]), encoder.size))
        with torch.no_grad():
            for rows in _by_length(self.lengths):
                padded = pad_sequence([ids[row] for row in rows], batch_first=True)
                pieces = Pieces(padded, torch.full_like(padded, -1), torch.from_numpy(self.lengths[rows]))
                x, mask = encoder.norm(encoder.embed(pieces)), pieces.mask[:, None, None, :]
                for layer in encoder.layers[:below]:
                    x = layer(x, mask, 0.0)
                for row, own in zip(rows.tolist(), x.numpy(), strict=True):
                    self.outputs[self.starts[row] : self.starts[row + 1]] = own[: self.lengths[row]]

    def sentences(self, top: nn.ModuleList, rows: Rows, most: int) -> Tensor:
        """u of texts of which at most so many pieces are read, by these last layers. (N, D)"""
        lengths = np.minimum(self.lengths[rows], most)
        own = np.zeros((len(rows), int(lengths.max()), self.outputs.shape[1]), dtype=np.float32)
        for n, (start, length) in enumerate(zip(self.starts[rows].tolist(), lengths.tolist(), strict=True)):
            own[n, :length] = self.outputs[start : start + length]
        x, mask = torch.from_numpy(own), torch.from_numpy(np.arange(own.shape[1]) < lengths[:, None])
        for layer in top:
            x = layer(x, mask[:, None, None, :], 0.0)
        return normalize(pooled(x, mask, torch.from_numpy(lengths), self.pooling), dim=1)

    def vectors(self, top: nn.ModuleList) -> Vectors:
        """The sentence vectors of all texts by these last layers. (N, D)"""
        found = np.empty((len(self.lengths), self.outputs.shape[1]), dtype=np.float32)
        with torch.no_grad():
            for rows in _by_length(self.lengths):
                found[rows] = self.sentences(top, rows, int(self.lengths[rows].max())).numpy()
        return found


def tuned_layers(
    lower: LowerOutputs,
    rows: Rows,
    answers: sp.csr_array,
    epochs: int,
    *,
    rate: float = RATE,
    stopped: Callable[[], bool] = lambda: False,
) -> nn.ModuleList:
    """The last layers after learning from these texts, whose answers are (len(rows), A), 1 where one is right."""
    top = _copied(lower)
    right = torch.from_numpy(answers.toarray().astype(np.float32))
    right /= right.sum(1, keepdim=True)
    with torch.no_grad():
        known = torch.cat(
            [lower.sentences(top, some, MOST) for some in np.array_split(rows, len(rows) // _AT_ONCE + 1)]
        )
        means = nn.Parameter(normalize(right.T @ known, dim=1))

    def loss(batch: Rows) -> Tensor:
        cosines = lower.sentences(top, rows[batch], MOST) @ normalize(means, dim=1).T
        return -(right[batch] * log_softmax(_SCALE * cosines, dim=1)).sum(1).mean()

    return _learnt(top, [means], np.minimum(lower.lengths[rows], MOST), loss, epochs, rate, stopped)


def layers_tuned_by_pairs(
    lower: LowerOutputs,
    rows: Rows,
    match: NDArray[np.bool_],
    epochs: int,
    *,
    rate: float = PAIR_RATE,
    stopped: Callable[[], bool] = lambda: False,
) -> nn.ModuleList:
    """The last layers after learning which pairs of texts match, from pairs whose texts are the rows (N, 2)."""
    top = _copied(lower)
    with torch.no_grad():
        some = rows[:: len(rows) // _MEASURED + 1]
        middle = _cosines(lower, top, some).median()
    scale, shift = nn.Parameter(torch.tensor(_PAIR_SCALE)), nn.Parameter(-_PAIR_SCALE * middle)
    right = torch.from_numpy(match.astype(np.float32))

    def loss(batch: Rows) -> Tensor:
        return binary_cross_entropy_with_logits(scale * _cosines(lower, top, rows[batch]) + shift, right[batch])

    lengths = np.minimum(lower.lengths[rows].max(axis=1), MOST)
    return _learnt(top, [scale, shift], lengths, loss, epochs, rate, stopped)


def _cosines(lower: LowerOutputs, top: nn.ModuleList, rows: Rows) -> Tensor:
    """Of the two texts of each pair. (B, 2) -> (B,)"""
    u = lower.sentences(top, rows.T.reshape(-1), MOST)
    return (u[: len(rows)] * u[len(rows) :]).sum(1)


def _copied(lower: LowerOutputs) -> nn.ModuleList:
    """The last layers, to be moved."""
    top = copy.deepcopy(lower.top)
    for parameter in top.parameters():
        parameter.requires_grad_(True)
    return top


def _learnt(
    top: nn.ModuleList,
    others: Sequence[nn.Parameter],
    lengths: Rows,
    loss_of: Callable[[Rows], Tensor],
    epochs: int,
    rate: float,
    stopped: Callable[[], bool],
) -> nn.ModuleList:
    """The layers after so many epochs in which `others` learn beside them.

    On one thread: several can be tuned side by side. They end where they are once it is `stopped`.
    """
    optimizer = Adam(
        [
            {"params": list(top.parameters()), "lr": rate, "weight_decay": _DECAY},
            {"params": list(others), "lr": _FASTER * rate, "weight_decay": 0.0},
        ],
        decoupled_weight_decay=True,
    )
    learning = [*top.parameters(), *others]
    steps, done = epochs * -(-len(lengths) // _BATCH), 0
    draw = np.random.default_rng(0)
    for _ in range(epochs):
        for batch in _batches(lengths, draw):
            if stopped():
                return top
            set_rates(optimizer, rate_factor(done / steps, _WARMUP))
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            clip_gradients(learning, _CLIP)
            optimizer.step()
            done += 1
    return top.requires_grad_(False)


def with_layers(encoder: Transformer, top: nn.ModuleList) -> Transformer:
    """An encoder with these last layers; everything else it has in common with the one it was tuned from."""
    made = Transformer(
        encoder.shape, encoder.tokenizer, training_pieces=encoder.training_pieces, pooling=encoder.pooling
    )
    below = len(encoder.layers) - len(top)
    made.words, made.places, made.second, made.norm = encoder.words, encoder.places, encoder.second, encoder.norm
    made.layers = nn.ModuleList([*encoder.layers[:below], *top])
    return made


def _batches(lengths: Rows, draw: np.random.Generator) -> Iterator[Rows]:
    """All texts once, in an order that is drawn; those of a batch are of like length."""
    order = draw.permutation(len(lengths))
    found = []
    for start in range(0, len(order), _BATCH * _BUCKET):
        bucket = order[start : start + _BATCH * _BUCKET]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        found += [bucket[n : n + _BATCH] for n in range(0, len(bucket), _BATCH)]
    yield from (found[n] for n in draw.permutation(len(found)))


def _by_length(lengths: Rows) -> Iterator[Rows]:
    order = np.argsort(lengths, kind="stable")
    yield from (order[start : start + _AT_ONCE] for start in range(0, len(order), _AT_ONCE))


def _empty(shape: tuple[int, int]) -> Vectors:
    """Room for numbers, in memory or in a file that goes with them."""
    if 4 * shape[0] * shape[1] <= _IN_MEMORY:
        return np.empty(shape, dtype=np.float32)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)
