"""A model against its slow reference: scores and gradients over all pairs of the tests, in double precision."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from matchloom.models.base import PairModel
from tests.models.making import PAIRS, TEXTS, TOKENIZER, VOCAB, make_pairs


def read(model: PairModel, n: int) -> list:
    """What the model looks at: words for the indicator, else their ids. A text without words matches nothing."""
    words = TOKENIZER(TEXTS[n])
    return (words or [object()]) if model.needs_lexical else (VOCAB.ids(words) or [1])


def loop(model: PairModel, reference: Callable[..., Tensor]) -> Tensor:
    """The reference's score of every pair."""
    return torch.stack([reference(model, read(model, i), read(model, j)) for i, j in PAIRS])


def assert_same_scores(model: PairModel, reference: Callable[..., Tensor]) -> None:
    torch.testing.assert_close(model(make_pairs(model)), loop(model, reference), rtol=1e-10, atol=1e-10)


def assert_same_gradients(model: PairModel, reference: Callable[..., Tensor]) -> None:
    weights = torch.linspace(-1, 1, len(PAIRS), dtype=torch.double)
    learnt = (p for p in model.parameters() if p.requires_grad)
    parameters = [p for p in learnt if model.trains_embedding or p is not model.encoder.embedding.weight]
    ours = torch.autograd.grad((model(make_pairs(model)) * weights).sum(), parameters)
    theirs = torch.autograd.grad((loop(model, reference) * weights).sum(), parameters)
    for parameter, a, b in zip(parameters, ours, theirs, strict=True):
        if parameter is model.encoder.embedding.weight:
            a, b = a[1:], b[1:]  # the padding row is never trained
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)
