"""Word vectors: the first encoder. A word has one vector, wherever it stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from matchloom.batches import DistinctWords, Texts
from matchloom.encoders.base import Encoder
from matchloom.kernels.lstm import distinct_words
from matchloom.text.vocab import PADDING


class WordEmbedding(Encoder):
    """A table with a row for each id of a vocabulary."""

    vocabulary: int

    def __init__(self, words: int, size: int, matrix: NDArray[np.float32] | None = None) -> None:
        """`matrix` has the first vectors, (words, size); without, they are drawn at random or loaded later."""
        super().__init__()
        self.vocabulary, self.size = words, size
        weight = None if matrix is None else torch.from_numpy(matrix)
        self.embedding: nn.Embedding = nn.Embedding(words, size, padding_idx=PADDING, _weight=weight)

    def forward(self, texts: Texts) -> Tensor:
        """(N, L, size)"""
        vectors: Tensor = self.embedding(texts.words)
        return vectors

    def distinct(self, texts: Texts) -> Tensor | DistinctWords:
        """Each word once, where the native LSTM serves and that saves it work."""
        found = distinct_words(texts.words)
        if found is None:
            return super().distinct(texts)
        sparse = self.embedding.sparse and self.embedding.weight.requires_grad and torch.is_grad_enabled()
        table = self.embedding.weight
        vectors: Tensor = _Rows.apply(table, found[0]) if sparse else self.embedding(found[0])  # type: ignore[no-untyped-call]
        return DistinctWords(vectors, found[1])

    def settings(self) -> dict[str, Any]:
        """Its size; the number of words is the vocabulary's."""
        return {"kind": "word_embedding", "size": self.size}

    def learn(self, wanted: bool, *, layers: int = 0) -> None:
        """Gradients hold only the words of a batch: the table may have millions."""
        super().learn(wanted)
        self.embedding.sparse = wanted

    def in_double(self) -> Encoder:
        """The same table: nothing is summed here, so that its numbers in double precision are as good as a copy."""
        return _SharedWords(self)

    def vectors(self) -> NDArray[np.float32]:
        """The rows as they are now, (words, size)."""
        rows: NDArray[np.float32] = self.embedding.weight.detach().cpu().numpy()
        return rows


class _Rows(torch.autograd.Function):
    """Rows of a table, each once and in ascending order, so that there is nothing to add up in their gradient."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.shape = table.shape
        return table.index_select(0, ids)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (ids,), (up,) = ctx.saved_tensors, gradients
        if int(ids[0]) == PADDING:  # which learns nothing
            ids, up = ids[1:], up[1:]
        found = torch.sparse_coo_tensor(ids[None], up, ctx.shape, is_coalesced=True, check_invariants=False)
        return found, None


class _SharedWords(Encoder):
    """The table of another encoder, of which it has no copy, in double precision."""

    vocabulary: int

    def __init__(self, words: WordEmbedding) -> None:
        super().__init__()
        self.vocabulary, self.size = words.vocabulary, words.size
        self._words = [words]  # in a list: it is not a part of this one, and stays in its precision

    def forward(self, texts: Texts) -> Tensor:
        """(N, L, size)"""
        vectors: Tensor = self._words[0](texts).double()
        return vectors

    def distinct(self, texts: Texts) -> Tensor | DistinctWords:
        """Those of the table."""
        found = self._words[0].distinct(texts)
        return found.double() if isinstance(found, Tensor) else DistinctWords(found.vectors.double(), found.rows)

    def settings(self) -> dict[str, Any]:
        """Those of the table."""
        return self._words[0].settings()

    @property
    def device(self) -> torch.device:
        """Where the table is."""
        return self._words[0].device
