"""Patches: small sets of words, in each of which a word has a vector of its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.onnx import is_in_onnx_export

from matchloom.batches import Texts

NO_WORD = -1


class Patches(nn.Module):
    """Sums the vectors that a text's words have in each patch; a word of no patch adds nothing.

    Patches are a list of (word, patch) entries, sorted by word: what is worked on grows with the words of the texts and
    the patches that they are in, not with the vocabulary. Every patch has room for `size` words; what it does not need
    are entries without a word, in front of all others.
    """

    words: Tensor  # (S,) the word of each entry
    homes: Tensor  # (S,) its patch

    def __init__(self, count: int, size: int, width: int) -> None:
        super().__init__()
        self.count, self.size = count, size
        self.register_buffer("words", torch.full((count * size,), NO_WORD))
        self.register_buffer("homes", torch.arange(count).repeat_interleave(size))
        self.L = nn.Parameter(torch.empty(count * size, width))

    def fill(self, sets: Sequence[Sequence[int]]) -> None:
        """Say which words are in each patch: no more than there is room for, and each once."""
        padded = torch.tensor([[*words, *[NO_WORD] * (self.size - len(words))] for words in sets]).flatten()
        order = padded.argsort(stable=True)
        self.words.copy_(padded[order])
        self.homes.copy_(order // self.size)

    def forward(self, texts: Texts) -> Tensor:
        """(N, patches, width)"""
        if is_in_onnx_export():
            return self._of_every_entry(texts)
        N = len(texts.words)
        rows = texts.mask.nonzero()[:, 0]  # the text of each word
        words = texts.words[texts.mask]
        first = torch.searchsorted(self.words, words)
        many = torch.searchsorted(self.words, words, right=True) - first  # the patches of each word
        starts = (first - many.cumsum(0) + many).repeat_interleave(many)
        entries = starts + torch.arange(len(starts), device=words.device)
        places = rows.repeat_interleave(many) * self.count + self.homes[entries]
        vectors = self.L.index_select(0, entries)
        return vectors.new_zeros(N * self.count, vectors.shape[1]).index_add(0, places, vectors).view(N, self.count, -1)

    def _of_every_entry(self, texts: Texts) -> Tensor:
        """For a graph, which cannot look words up: how often each entry's word stands in each text, times L."""
        counts = ((texts.words[:, :, None] == self.words) & texts.mask[:, :, None]).to(self.L.dtype).sum(1)  # (N, S)
        order = self.homes.argsort()  # each patch has as many entries
        L = self.L[order].view(self.count, self.size, -1)
        return torch.einsum("ncs,csw->ncw", counts[:, order].view(-1, self.count, self.size), L)
