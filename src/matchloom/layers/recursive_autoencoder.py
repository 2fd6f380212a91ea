"""Recursive autoencoders: binary trees over texts, learnt by unfolding them again (Socher et al., 2011)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

# Errors that are larger than the lowest by less than this part of it count as equal, and the first of them is taken:
# where words stand twice errors are equal but for their last bits, and those may depend on the batch.
EQUAL = 1e-5


class Trees(NamedTuple):
    """Binary trees over N texts of up to L words. Node i < L is word i; node L + t is what merge t made.

    A text of n words has n - 1 merges. Its other nodes are no part of the tree: their children and spans are -1.
    """

    nodes: Tensor  # (N, 2L - 1, D)
    children: Tensor  # (N, 2L - 1, 2) int64: the numbers of the two nodes below; -1 for a word
    spans: Tensor  # (N, 2L - 1, 2) int64: first word, and the one behind the last


class RecursiveAutoencoder(nn.Module):
    """p = f(W_e [c1 ; c2] + b_e) and [c1' ; c2'] = f(W_d p + b_d), f = tanh."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.W_e = nn.Linear(2 * size, size)
        self.W_d = nn.Linear(size, 2 * size)
        for layer in (self.W_e, self.W_d):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def encode(self, c: Tensor) -> Tensor:
        """Parents (..., D) of children [c1 ; c2] (..., 2D)."""
        return torch.tanh(self.W_e(c))

    def decode(self, p: Tensor) -> Tensor:
        """What parents (..., D) remember of their children. (..., 2D)"""
        return torch.tanh(self.W_d(p))

    @torch.no_grad()
    def grow(self, x: Tensor, lengths: Tensor) -> Trees:
        """Greedy trees over word vectors x (N, L, D): the neighbours with the lowest error |c - c'|^2 merge first.

        All texts take one merge a step; a step looks only at the two pairs of neighbours that the last one made new.
        """
        N, L, D = x.shape
        nodes = torch.cat([x, x.new_zeros(N, L - 1, D)], 1)
        children = torch.full((N, 2 * L - 1, 2), -1, device=x.device)
        places = torch.arange(L, device=x.device).repeat(N, 1)
        inside = places < lengths[:, None]
        spans = torch.cat([torch.stack([places, places + 1], 2).where(inside[:, :, None], -1), children[:, L:]], 1)
        # The text as it stands: a node has its place at its first word. `behind` has the place of the next node, or
        # the text's length; the last column of `before` and `errors` is nobody's, for neighbours that are not there.
        standing, behind = places.clone(), places + 1
        before = torch.cat([places - 1, places[:, :1]], 1)
        errors = x.new_full((N, L + 1), torch.inf)
        parents = x.new_zeros(N, L + 1, D)
        parents[:, : L - 1], errors[:, : L - 1] = self._merged(torch.cat([x[:, :-1], x[:, 1:]], 2))
        errors[:, :L].masked_fill_(behind >= lengths[:, None], torch.inf)
        for t in range(L - 1):
            rows = (lengths > t + 1).nonzero()[:, 0]  # the texts that still have two nodes
            n, e = lengths[rows], errors[rows]
            i = (e <= e.amin(1, keepdim=True) * (1 + EQUAL)).to(torch.uint8).argmax(1)  # the first of them
            j = behind[rows, i]
            h, k = before[rows, i], behind[rows, j]  # the neighbours of the new node, at i
            children[rows, L + t] = torch.stack([standing[rows, i], standing[rows, j]], 1)
            spans[rows, L + t] = torch.stack([i, k], 1)
            nodes[rows, L + t] = parents[rows, i]
            standing[rows, i], behind[rows, i], before[rows, k] = L + t, k, i
            errors[rows, j] = torch.inf
            left, right = standing[rows, h.clamp_min(0)], standing[rows, k.clamp_max(L - 1)]
            p = nodes[rows, L + t]
            pairs = torch.stack([torch.cat([nodes[rows, left], p], 1), torch.cat([p, nodes[rows, right]], 1)], 1)
            parent, error = self._merged(pairs)
            parents[rows, h], errors[rows, h] = parent[:, 0], error[:, 0].masked_fill(h < 0, torch.inf)
            parents[rows, i], errors[rows, i] = parent[:, 1], error[:, 1].masked_fill(k >= n, torch.inf)
        return Trees(nodes, children, spans)

    def _merged(self, c: Tensor) -> tuple[Tensor, Tensor]:
        p = self.encode(c)
        return p, (self.decode(p) - c).square().sum(-1)

    def compose(self, x: Tensor, children: Tensor) -> Tensor:
        """The nodes (N, 2L - 1, D) of trees that are there already, with gradients. What is in no tree is 0."""
        N, L, D = x.shape
        nodes = torch.cat([x, x.new_zeros(N, L - 1, D)], 1).flatten(0, 1)
        numbered = _numbered(children)
        for t in range(L, 2 * L - 1):
            rows = (children[:, t, 0] >= 0).nonzero()[:, 0]
            c = nodes.index_select(0, numbered[rows, t].flatten()).view(-1, 2 * D)
            nodes = nodes.index_copy(0, rows * (2 * L - 1) + t, self.encode(c))
        return nodes.view(N, -1, D)

    def unfolding_error(self, x: Tensor, lengths: Tensor) -> Tensor:
        """E_rec, summed over all inner nodes of the greedy trees of all texts: |x_i - x_i'|^2 of every word below.

        Each inner node is decoded down to its words, all nodes of all texts together: the first step decodes every
        inner node to its children's level, the next one those of the results that are no words, and so on.
        """
        children = self.grow(x, lengths).children
        nodes = self.compose(x, children).flatten(0, 1)
        below, words = _numbered(children).flatten(0, 1), nodes.detach()
        is_inner = below[:, 0] >= 0
        at = is_inner.nonzero()[:, 0]  # which node each row of r stands for
        r = nodes.index_select(0, at)
        total = x.new_zeros(())
        while len(at):
            r = self.decode(r).view(-1, x.shape[2])
            at = below.index_select(0, at).flatten()
            inner = is_inner.index_select(0, at)
            leaf, go_on = (~inner).nonzero()[:, 0], inner.nonzero()[:, 0]
            missed = r.index_select(0, leaf) - words.index_select(0, at.index_select(0, leaf))
            total = total + missed.square().sum()
            r, at = r.index_select(0, go_on), at.index_select(0, go_on)
        return total


def _numbered(children: Tensor) -> Tensor:
    """The same with nodes numbered through all texts; what was -1 is still below 0."""
    N, nodes = children.shape[:2]
    starts = nodes * torch.arange(N, device=children.device)[:, None, None]
    return torch.where(children < 0, -1, children + starts)


def reading_order(trees: Trees) -> Tensor:
    """The nodes of each tree: words as they stand, then inner nodes depth-first from right to left. (N, 2L - 1)

    That is by falling end, and of those with one end the wider first: it holds the others. What is in no tree comes
    last.
    """
    first, end = trees.spans.unbind(2)
    L = (first.shape[1] + 1) // 2
    key = torch.where(end - first == 1, first, L + (L - end) * L + first)
    return torch.where(end < 0, L + L * (L + 1), key).argsort(dim=1, stable=True)
