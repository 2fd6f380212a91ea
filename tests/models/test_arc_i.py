"""ARC-I against the slow reference, and its contributions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from tests.models.comparing import assert_same_gradients, assert_same_scores, read
from tests.models.making import PAIRS, make_model, make_pairs
from tests.reference import arc as reference
from tests.refusing import refused

VARIANTS = [
    {},
    {"window": 1},
    {"window": 2, "layers": 1},
    {"layers": 3, "max_words": 20},
    {"max_words": 5},
    {"max_words": 16, "layers": 1},
]


@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_equals_the_paper_window_by_window(arguments: dict) -> None:
    assert_same_scores(make_model("arc_i", **{"maps": 4, "units": 6, "max_words": 18, **arguments}), reference.arc_i)


def test_gradients_equal_the_reference() -> None:
    assert_same_gradients(make_model("arc_i", maps=3, units=5, max_words=14), reference.arc_i)


def test_words_behind_the_longest_are_not_read() -> None:
    model = make_model("arc_i", max_words=4)
    batch = make_pairs(model, [(0, 1)])
    other = make_pairs(model, [(0, 1)])
    other.left.words[:, 4:] = 2
    assert torch.equal(model(batch), model(other))
    other.left.words[:, 3] = 2
    assert not torch.equal(model(batch), model(other))


def test_shares_are_vector_times_slope_of_each_word() -> None:
    model = make_model("arc_i", maps=4, max_words=18)
    traces = model.trace(make_pairs(model))
    for (i, j), trace in zip(PAIRS, traces, strict=True):
        left, right = read(model, i), read(model, j)
        # Word by word: a leaf for every word of the pair, not for every word of the vocabulary.
        rows = model.encoder.embedding.weight[[*left, *right]].detach().requires_grad_()

        encoder = SimpleNamespace(embedding=SimpleNamespace(weight=rows))
        copy = SimpleNamespace(layers=model.layers, max_words=model.max_words, head=model.head, encoder=encoder)
        places = list(range(len(left) + len(right)))
        score = reference.arc_i(copy, places[: len(left)], places[len(left) :])
        expected = (torch.autograd.grad(score, rows)[0] * rows.detach()).sum(1).tolist()
        a, b = expected[: len(left)], expected[len(left) :]
        # Each word's contribution, spread over the words of the other text.
        cells = [pytest.approx([x / len(b) + y / len(a) for y in b], abs=1e-9) for x in a]
        assert trace.grid[0].tolist() == cells
        assert sum(signal.contribution for signal in trace.signals) == pytest.approx(sum(expected), abs=1e-9)
        assert not trace.components


def test_dropout_is_for_training_alone() -> None:
    model, plain = make_model("arc_i", dropout=0.5), make_model("arc_i")
    batch = make_pairs(model)
    assert model.draws_at_random
    assert not plain.draws_at_random
    torch.testing.assert_close(model(batch), plain(batch))
    torch.manual_seed(0)
    left_out = model.train()(batch)
    assert not torch.allclose(left_out, plain(batch))
    with refused("bad_value", "dropout", "arc_i", "0", "1"):
        make_model("arc_i", dropout=1.0)
