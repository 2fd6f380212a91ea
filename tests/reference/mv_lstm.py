"""MV-LSTM, LSTM-RNN and Bi-LSTM-RNN word by word and cell by cell, straight from the paper, one pair at a time."""

from __future__ import annotations

import torch
from torch import Tensor


def lstm(words: list[Tensor], lstm: torch.nn.LSTM) -> list[Tensor]:
    """i, f, c, o, h of the paper's step 1, one word after the other."""
    W, U = lstm.weight_ih_l0, lstm.weight_hh_l0
    b = lstm.bias_ih_l0 + lstm.bias_hh_l0
    H = lstm.hidden_size
    h, c = torch.zeros(H, dtype=W.dtype), torch.zeros(H, dtype=W.dtype)
    states = []
    for x in words:
        a = W @ x + U @ h + b
        i, f = torch.sigmoid(a[:H]), torch.sigmoid(a[H : 2 * H])
        c = f * c + i * torch.tanh(a[2 * H : 3 * H])
        o = torch.sigmoid(a[3 * H :])
        h = o * torch.tanh(c)
        states.append(h)
    return states


def positions(words: list[Tensor], forwards: torch.nn.LSTM, backwards: torch.nn.LSTM) -> list[Tensor]:
    ahead = lstm(words, forwards)
    back = lstm(words[::-1], backwards)[::-1]
    return [torch.cat([f, b]) for f, b in zip(ahead, back, strict=True)]


def cosine(u: Tensor, v: Tensor) -> Tensor:
    return (u @ v) / (u.norm() * v.norm())


def interaction(layer: torch.nn.Module, u: Tensor, v: Tensor) -> list[Tensor]:
    """s(u, v), one value for each slice."""
    kind = type(layer).__name__
    if kind == "Cosine":
        return [cosine(u, v)]
    slices = [layer.M] if kind == "Bilinear" else list(layer.M)
    if layer.factored:
        slices = [T @ T.T for T in slices]
    if kind == "Bilinear":
        return [u @ slices[0] @ v + layer.b[0]]
    W = torch.cat([layer.W_u, layer.W_v])  # the paper's W_uv, for [u ; v]
    return [torch.relu(u @ M @ v + torch.cat([u, v]) @ W[:, c] + layer.b[c]) for c, M in enumerate(slices)]


def exact_slices(left: list[str], right: list[str], idf) -> list[list[tuple[int, int, float]]]:
    """For each distinct shared word its first place on either side and its IDF."""
    cells, seen = [], set()
    for i, word in enumerate(left):
        if word in right and word not in seen:
            seen.add(word)
            cells.append((i, right.index(word), idf(word)))
    return cells


def k_largest(values: list[Tensor], k: int) -> list[Tensor]:
    best = sorted(values, key=float, reverse=True)[:k]
    return best + [torch.zeros((), dtype=values[0].dtype)] * (k - len(best))


def mv_lstm(model, left: list[int], right: list[int], lexical: list[list[float]] | None = None) -> Tensor:
    """The score of one pair of word ids. `lexical` lists the IDFs of the matches, for each lexical slice."""
    readers = (model.positions.forwards.lstm, model.positions.backwards.lstm)
    sides = []
    for ids in (left, right):
        words = [model.encoder.embedding.weight[i] for i in ids]
        p = positions(words, *readers)
        if model.words:
            p = [torch.cat([x, state]) for x, state in zip(words, p, strict=True)]
        sides.append([u / u.norm() for u in p] if model.normalize else p)
    X, Y = sides
    grid = [[interaction(model.interaction, u, v) for v in Y] for u in X]
    q = []
    for c in range(model.interaction.channels):
        q += k_largest([cell[c] for row in grid for cell in row], model.k)
    sums = []
    discount = 1 / (1 + len(right) / 40)
    for idfs in lexical or []:
        values = [torch.tensor(x, dtype=X[0].dtype) for x in idfs]
        zeros = [torch.zeros((), dtype=X[0].dtype)] * (len(left) * len(right) - len(values))
        q += k_largest(values + zeros, model.k)
        total, squares = sum(idfs), sum(x * x for x in idfs)
        sums += [torch.tensor(x, dtype=X[0].dtype) for x in (total, total * discount, squares * discount)]
    q = torch.stack(q + sums)
    r = torch.relu(model.head.W_r.weight @ q + model.head.W_r.bias)
    return model.head.W_s.weight[0] @ r + model.head.W_s.bias[0]


def lstm_rnn(model, left: list[int], right: list[int]) -> Tensor:
    """Cosine of the last states of each direction, concatenated, or an MLP over both."""

    def vector(ids: list[int]) -> Tensor:
        words = [model.encoder.embedding.weight[i] for i in ids]
        ends = [lstm(words if n == 0 else words[::-1], reader.lstm)[-1] for n, reader in enumerate(model.readers)]
        return torch.cat(ends)

    if model.head is None:
        return cosine(vector(left), vector(right))
    r = torch.relu(model.head.W_r.weight @ torch.cat([vector(left), vector(right)]) + model.head.W_r.bias)
    return model.head.W_s.weight[0] @ r + model.head.W_s.bias[0]
