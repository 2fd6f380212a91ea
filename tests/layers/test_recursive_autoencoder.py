"""Recursive autoencoders against trees that are grown and unfolded node by node."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from matchloom.layers.recursive_autoencoder import RecursiveAutoencoder, reading_order
from tests.drawing import examples
from tests.reference import rae as reference

SIZE = 3


def make(seed: int = 0) -> RecursiveAutoencoder:
    torch.manual_seed(seed)
    layer = RecursiveAutoencoder(SIZE).double()
    torch.nn.init.uniform_(layer.W_e.bias, -0.5, 0.5)
    torch.nn.init.uniform_(layer.W_d.bias, -0.5, 0.5)
    return layer


def make_texts(lengths: list[int], seed: int, kinds: int = 4) -> tuple[Tensor, Tensor]:
    """Texts of few different words, so that equal neighbours are common; what lies behind them is no zero."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randn(kinds, SIZE, dtype=torch.double, generator=generator)
    ids = torch.randint(0, kinds, (len(lengths), max(lengths) + seed % 3), generator=generator)
    return words[ids], torch.tensor(lengths)


@examples(40)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 99))
def test_trees_are_those_of_the_reference(lengths: list[int], seed: int) -> None:
    layer = make(seed)
    x, n = make_texts(lengths, seed)
    trees = layer.grow(x, n)
    order = reading_order(trees)
    for row, length in enumerate(lengths):
        root = reference.tree(layer, list(x[row, :length]))
        words = [reference.Node(x[row, i], [i]) for i in range(length)]
        expected = words + reference.phrases(root)
        for place, node in zip(order[row, : 2 * length - 1].tolist(), expected, strict=True):
            assert trees.spans[row, place].tolist() == [node.words[0], node.words[-1] + 1]
            torch.testing.assert_close(trees.nodes[row, place], node.vector.detach(), rtol=1e-10, atol=1e-12)
        assert (trees.spans[row] >= 0).all(1).sum() == 2 * length - 1
    torch.testing.assert_close(
        layer.compose(x, trees.children)[trees.spans[:, :, 0] >= 0], trees.nodes[trees.spans[:, :, 0] >= 0]
    )


@pytest.mark.parametrize("lengths", [[1], [2], [1, 7, 4], [9, 9]])
def test_unfolding_error_and_its_gradients_equal_the_reference(lengths: list[int]) -> None:
    layer = make()
    x, n = make_texts(lengths, seed=5, kinds=9)
    ours = layer.unfolding_error(x, n)
    theirs = sum(reference.unfolding_error(layer, list(x[row, :length])) for row, length in enumerate(lengths))
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
    if max(lengths) > 1:
        parameters = list(layer.parameters())
        for a, b in zip(torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters), strict=True):
            assert a.abs().sum() > 0
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


def test_the_order_is_words_then_phrases_from_the_right() -> None:
    layer = make()
    trees = layer.grow(*make_texts([6], seed=3, kinds=9))
    spans = trees.spans[0, reading_order(trees)[0]].tolist()
    assert spans[:7] == [*([i, i + 1] for i in range(6)), [0, 6]]
    ends = [end for _, end in spans[6:]]
    assert ends == sorted(ends, reverse=True)


def test_equal_neighbours_merge_from_the_left_whatever_the_batch() -> None:
    layer = make().float()
    words = torch.randn(2, SIZE, generator=torch.Generator().manual_seed(1))
    text = words[torch.tensor([0, 1] * 12)]
    alone = layer.grow(text[None], torch.tensor([24]))
    starts = alone.spans[0, 24:, 0].tolist()
    same = [start for start, end in alone.spans[0, 24:].tolist() if end - start == 2]
    assert same == sorted(same)
    assert starts[0] in (0, 1)
    for mates in (1, 5, 30):
        x = torch.randn(mates + 1, 31, SIZE, generator=torch.Generator().manual_seed(mates))
        x[mates, :24] = text
        lengths = torch.tensor([31] * mates + [24])
        together = layer.grow(x, lengths)
        assert torch.equal(together.spans[mates, 31 : 31 + 23], alone.spans[0, 24:])


def test_words_that_repeat_are_unfolded_perfectly_in_the_end() -> None:
    """Two words, a few steps of a plain optimizer: the error goes far below that of knowing nothing."""
    layer = make()
    x, n = make_texts([4, 6, 5, 6], seed=2, kinds=2)
    x = x.clamp(-0.9, 0.9)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    first = float(layer.unfolding_error(x, n).detach())
    for _ in range(150):
        error = layer.unfolding_error(x, n)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    assert float(error.detach()) < 0.1 * first
