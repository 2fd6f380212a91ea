"""RAE node by node, one text and one pair at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from tests.reference import pooling

EQUAL = 1e-5  # errors so near to each other, as parts of the lowest, are equal: the first wins


@dataclass
class Node:
    """A word or a phrase with its vector; words are numbered."""

    vector: Tensor
    words: list[int]
    children: tuple[Node, Node] | None = None


def parent(rae, left: Node, right: Node) -> Node:
    """p = tanh(W_e [c1 ; c2] + b_e)"""
    c = torch.cat([left.vector, right.vector])
    return Node(torch.tanh(rae.W_e.weight @ c + rae.W_e.bias), left.words + right.words, (left, right))


def reconstructed(rae, p: Tensor) -> tuple[Tensor, Tensor]:
    """[c1' ; c2'] = tanh(W_d p + b_d)"""
    both = torch.tanh(rae.W_d.weight @ p + rae.W_d.bias)
    return both[: len(p)], both[len(p) :]


def one_level_error(rae, node: Node) -> float:
    assert node.children is not None
    made = reconstructed(rae, node.vector)
    return sum(float(((a.vector - b) ** 2).sum().detach()) for a, b in zip(node.children, made, strict=True))


def tree(rae, words: Sequence[Tensor]) -> Node:
    """The greedy tree; its root."""
    standing = [Node(x, [i]) for i, x in enumerate(words)]
    while len(standing) > 1:
        merged = [parent(rae, a, b) for a, b in pairwise(standing)]
        errors = [one_level_error(rae, node) for node in merged]
        best = next(i for i, error in enumerate(errors) if error <= min(errors) * (1 + EQUAL))
        standing[best : best + 2] = [merged[best]]
    return standing[0]


def phrases(node: Node) -> list[Node]:
    """Inner nodes depth-first, the right side before the left."""
    if node.children is None:
        return []
    left, right = node.children
    return [node, *phrases(right), *phrases(left)]


def unfolded(rae, node: Node, vector: Tensor) -> list[Tensor]:
    """What a vector in the place of a node makes of the words below."""
    if node.children is None:
        return [vector]
    left, right = reconstructed(rae, vector)
    return unfolded(rae, node.children[0], left) + unfolded(rae, node.children[1], right)


def unfolding_error(rae, words: Sequence[Tensor]) -> Tensor:
    """E_rec of all inner nodes of a text."""
    total = torch.zeros((), dtype=words[0].dtype)
    for node in phrases(tree(rae, words)):
        for i, made in zip(node.words, unfolded(rae, node, node.vector), strict=True):
            total = total + ((words[i] - made) ** 2).sum()
    return total


def nodes(model, ids: Sequence[int]) -> list[Node]:
    """The words, then the phrases."""
    words = [model.encoder.embedding.weight[i].detach() for i in ids]
    return [Node(x, [i]) for i, x in enumerate(words)] + phrases(tree(model.autoencoder, words))


def distances(left: Sequence[Node], right: Sequence[Node]) -> Tensor:
    """S"""
    return torch.stack([torch.stack([((u.vector - v.vector) ** 2).sum().sqrt() for v in right]) for u in left])


def classify(model, S: Tensor, features: Sequence[float]) -> Tensor:
    """From S and features, which are on one scale already, to the score."""
    score = model.classifier.bias[0]
    size = model.grid
    rows, columns = pooling.doubled(S.shape[0], size), pooling.doubled(S.shape[1], size)
    for a in range(size):
        for b in range(size):
            smallest = min((S[i, j] for i in rows[a] for j in columns[b]), key=lambda x: float(x.detach()))
            score = score + model.classifier.weight[0, a * size + b] * (smallest - model.mean) / model.deviation
    for k, value in enumerate(features):
        score = score + model.classifier.weight[0, size * size + k] * value
    return score


def rae(model, left: Sequence[int], right: Sequence[int], features: Sequence[float] = ()) -> Tensor:
    """The score of one pair."""
    return classify(model, distances(nodes(model, left), nodes(model, right)), features)


NUMBER_WORDS = ("one", "two", "three", "dozen", "half", "million")


def paraphrase(left: Sequence[str], right: Sequence[str]) -> list[float]:
    """The features of two lists of words."""
    x, y = ({w for w in side if re.search(r"\d", w) or w in NUMBER_WORDS} for side in (left, right))
    values = [float(x == y), float(x == y != set()), float(x < y or y < x), float(abs(len(left) - len(right)))]
    for ours, theirs in ((set(left), set(right)), (set(pairwise(left)), set(pairwise(right)))):
        values += [len(ours & theirs) / max(1, len(side)) for side in (ours, theirs)]
    return values
