"""A small random transformer that reads pieces of words: not for use, but to show that models take any encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from matchloom.batches import Texts
from matchloom.data.reader import WordPieces
from matchloom.encoders.base import Encoder
from matchloom.text.tokenize import Span, word_hash

PIECES = 97
START, END = PIECES, PIECES + 1  # marks around a text, which belong to no word


class Layer(nn.Module):
    """Attention with two heads and a small feed-forward network, each behind its normalisation."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
        self.first, self.second = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        N, P, D = x.shape
        q, k, v = (y.view(N, P, 2, D // 2).transpose(1, 2) for y in self.qkv(self.first(x)).chunk(3, 2))
        seen = scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = x + self.out(seen.transpose(1, 2).reshape(N, P, D))
        return x + self.down(torch.relu(self.up(self.second(x))))


class RandomTransformer(Encoder):
    """Two layers over pieces of up to three letters; a word is the mean of its pieces."""

    def __init__(self, size: int = 6, seed: int = 1) -> None:
        super().__init__()
        self.size = size
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.pieces = nn.Embedding(PIECES + 2, size)
            self.places = nn.Embedding(256, size)
            self.layers = nn.ModuleList(Layer(size) for _ in range(2))

    def word_pieces(self, text: str, words: Sequence[Span]) -> WordPieces:
        ids, of_word = [START], [-1]
        for n, word in enumerate(text[span.start : span.end] for span in words):
            cut = [word_hash(word[i : i + 3]) % PIECES for i in range(0, len(word), 3)]
            ids += cut
            of_word += [n] * len(cut)
        return WordPieces([*ids, END], [*of_word, -1])

    def forward(self, texts: Texts) -> Tensor:
        assert texts.pieces is not None
        ids, words, mask = texts.pieces.ids, texts.pieces.words, texts.pieces.mask
        x = self.pieces(ids) + self.places.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, mask)
        # The mean of each word's pieces; position L takes what belongs to no word, and is dropped.
        N, L = texts.words.shape
        target = torch.where(words < 0, L, words)[:, :, None].expand(-1, -1, self.size)
        sums = x.new_zeros(N, L + 1, self.size).scatter_add(1, target, x)
        counts = x.new_zeros(N, L + 1, self.size).scatter_add(1, target, torch.ones_like(x))
        return (sums / counts.clamp_min(1))[:, :L]

    def settings(self) -> dict[str, Any]:
        return {"kind": "random_transformer", "size": self.size}
