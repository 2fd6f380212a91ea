"""CNTN, NBOW+MLP and CNN+MLP word by word and value by value, straight from the papers, one pair at a time."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def wide_convolution(columns: list[Tensor], w: Tensor) -> list[Tensor]:
    """c_t = sum over j of w_j' x_{t-j} for t = 0 ... n + m - 2; w is (m, size, filters)."""
    n, m = len(columns), len(w)
    values = []
    for t in range(n + m - 1):
        c = torch.zeros(w.shape[2], dtype=w.dtype)
        for j in range(m):
            if 0 <= t - j < n:
                c = c + columns[t - j] @ w[j]
        values.append(c)
    return values


def k_max_in_order(row: list[Tensor], k: int) -> list[Tensor]:
    """The k largest of a row in their own order, the first of equal ones."""
    # Rounded, because windows of the same words differ in their last bits here.
    best = sorted(range(len(row)), key=lambda t: (-round(row[t].item(), 8), t))[:k]
    return [row[t] for t in sorted(best)]


def sentence_vector(cnn, words: list[Tensor]) -> Tensor:
    d = len(cnn.layers)
    columns = words
    for n, layer in enumerate(cnn.layers, start=1):
        k = max(cnn.k_top, math.ceil((d - n) / d * len(words)))
        if n == d:
            assert k == cnn.k_top
        c = wide_convolution(columns, layer.w)
        rows = [k_max_in_order([column[f] for column in c], k) for f in range(len(layer.b))]
        columns = [torch.tanh(torch.stack([row[p] for row in rows]) + layer.b) for p in range(len(rows[0]))]
    columns = columns + [torch.zeros_like(columns[0])] * (cnn.k_top - len(columns))
    z = cnn.W.weight @ torch.cat(columns) + cnn.W.bias
    return z / z.square().sum().sqrt() if cnn.normalize else z


def cntn(model, left: list[int], right: list[int]) -> Tensor:
    """Equation 1 with each variant's settings written out."""
    v_q = sentence_vector(model.query_cnn, [model.encoder.embedding.weight[i] for i in left])
    v_a = sentence_vector(model.text_cnn, [model.encoder.embedding.weight[i] for i in right])
    if model.variant == "I":
        return model.u[0] * (v_q @ v_a)
    if model.variant == "II":
        return model.u[0] * (v_q @ model.M[0] @ v_a)
    score = torch.zeros((), dtype=v_q.dtype)
    V = torch.cat([model.V_q, model.V_a], 1)
    for k in range({"III": 1, "IV": 1, "V": 5}[model.variant]):
        x = V[k] @ torch.cat([v_q, v_a]) + model.b[k]
        if model.variant != "III":
            x = x + v_q @ model.M[k] @ v_a
        score = score + model.u[k] * torch.relu(x)
    return score


def mlp(head, v: Tensor) -> Tensor:
    r = torch.relu(head.W_r.weight @ v + head.W_r.bias)
    return head.W_s.weight[0] @ r + head.W_s.bias[0]


def cnn_mlp(model, left: list[int], right: list[int]) -> Tensor:
    v_q = sentence_vector(model.query_cnn, [model.encoder.embedding.weight[i] for i in left])
    v_a = sentence_vector(model.text_cnn, [model.encoder.embedding.weight[i] for i in right])
    return mlp(model.head, torch.cat([v_q, v_a]))


def nbow_mlp(model, left: list[int], right: list[int]) -> Tensor:
    v_q, v_a = (sum(model.encoder.embedding.weight[i] for i in side) for side in (left, right))
    return mlp(model.head, torch.cat([v_q, v_a]))
