"""Small models and batches for the tests of models."""

from __future__ import annotations

import numpy as np
import torch

from matchloom.batches import PairBatch
from matchloom.data.batching import make_batch
from matchloom.encoders.base import Encoder
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.models import build_model
from matchloom.models.base import PairModel
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab

TOKENIZER = Tokenizer()
TEXTS = [
    "how do I open a file for reading",
    "open files with the open function and read the lines of the file",
    "closing sockets",
    "sort",
    "the list is sorted in place and the sort is stable and the list is kept",
    "",
    "zzyzx quux",
    "read",
]
VOCAB = Vocab.build([TOKENIZER(text) for text in TEXTS[:5]])
PAIRS = [(0, 1), (0, 4), (2, 1), (3, 3), (3, 4), (5, 1), (6, 6), (7, 5), (4, 0)]


def embedding(size: int = 6, seed: int = 1) -> WordEmbedding:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(len(VOCAB), size, generator=generator)
    weight[0] = 0
    return WordEmbedding(len(VOCAB), size, weight.numpy())


def make_model(
    name: str, seed: int = 0, encoder: Encoder | None = None, **arguments: int | float | str | bool
) -> PairModel:
    """A model in double precision whose scores differ well: start values of 0.1 leave them nearly equal."""
    model = build_model(name, arguments, encoder or embedding(), seed=seed).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.own_parameters():
            parameter.mul_(5)
            if not parameter.any():  # what starts at 0 would leave others without a gradient
                parameter.uniform_(-0.5, 0.5, generator=generator)
    return model


def make_pairs(model: PairModel, pairs: list[tuple[int, int]] | None = None) -> PairBatch:
    reader = model.encoder.reader(TOKENIZER, VOCAB)
    table = reader.read(TEXTS, lexical=model.needs_lexical, features=model.needs_features)
    left, right = (np.array(side) for side in zip(*(pairs or PAIRS), strict=True))
    return make_batch(table, table, left, right)
