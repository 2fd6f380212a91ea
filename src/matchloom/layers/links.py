"""Attention over two texts in a row, in which words of one may see less of the words of the other."""

from __future__ import annotations

import torch
from torch import Tensor


def attention_mask(words: Tensor, mask: Tensor, links: Tensor | None) -> Tensor:
    """Who may see whom, as `scaled_dot_product_attention` takes it: (B, 1, 1, P), or (B, 1, P, P) with links.

    `words` (B, P) says which word each position belongs to, the right text's counted on from the left one's L, and -1
    for none; `mask` (B, P) is False in padding. A link (B, L, R) multiplies how much a left and a right word look at
    each other, either way, before all that a position looks at is made to add up to one: 1 changes nothing, 0 lets
    them see nothing of each other but what passes through positions that belong to no word.
    """
    if links is None:
        return mask[:, None, None, :]
    B, L, R = links.shape
    between = links.new_ones(B, L + R + 1, L + R + 1)  # the last row and column are for positions of no word
    between[:, :L, L : L + R] = links
    between[:, L : L + R, :L] = links.transpose(1, 2)
    places = torch.where(words < 0, L + R, words)
    rows = torch.arange(B, device=words.device)[:, None, None]
    seen = between[rows, places[:, :, None], places[:, None, :]].log()  # (B, P, P)
    return seen.masked_fill(~mask[:, None, :], -torch.inf)[:, None]
