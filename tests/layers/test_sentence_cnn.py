"""Wide convolution against torch's own, equal windows, and the number of columns each layer keeps."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import conv1d

from matchloom.batches import Texts
from matchloom.layers.sentence_cnn import SentenceCNN, WideConvolution, dynamic_k


def filled(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return module


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_equals_a_convolution_with_padding_on_both_sides(width: int) -> None:
    layer = filled(WideConvolution(4, 6, width)).double()
    x = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(1)).double()
    weight = layer.w.permute(2, 1, 0).flip(2)  # torch's convolution does not turn the filter
    expected = conv1d(x.transpose(1, 2), weight, padding=width - 1).transpose(1, 2)
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize(("size", "filters"), [(25, 50), (50, 50), (6, 3), (16, 25)])
def test_windows_of_the_same_words_are_equal_to_the_last_bit(size: int, filters: int) -> None:
    layer = filled(WideConvolution(size, filters, 3))
    words = torch.randn(5, size, generator=torch.Generator().manual_seed(1))
    for length in (7, 16, 33, 50):
        x = words[torch.arange(length) % 5][None]
        c = layer(x)[:, 2:length]
        assert torch.equal(c[:, 5:], c[:, :-5])
        padded = torch.nn.functional.pad(torch.cat([x, x]), (0, 0, 0, 9))
        assert torch.equal(layer(padded)[1:, 2:length], c)


def test_dynamic_k_is_the_papers_formula() -> None:
    words = torch.arange(1, 61)
    for depth in (1, 2, 3, 5):
        for layer in range(1, depth + 1):
            expected = [max(4, -(-(depth - layer) * n // depth)) for n in words.tolist()]
            assert dynamic_k(words, layer, depth, 4).tolist() == expected
    assert dynamic_k(torch.tensor([18]), 1, 3, 3).tolist() == [12]  # the example of Kalchbrenner et al.
    assert dynamic_k(torch.tensor([18]), 2, 3, 3).tolist() == [6]
    assert dynamic_k(torch.tensor([7]), 1, 3, 1).tolist() == [math.ceil(14 / 3)]


def test_parts_of_words_and_biases_make_the_vector() -> None:
    cnn = filled(SentenceCNN(4, filters=5, depth=3, width=3, k_top=2, n_s=6)).double()
    texts = Texts(torch.zeros(3, 9, dtype=torch.long), torch.tensor([9, 1, 4]))
    x = torch.randn(3, 9, 4, generator=torch.Generator().manual_seed(1)).double()
    v, components = cnn.components(x, texts)
    torch.testing.assert_close(v, cnn(x, texts))
    assert not components[1, 1:].any()
    with torch.no_grad():
        for name, parameter in cnn.named_parameters():
            if name.endswith(("b", "bias")):
                parameter.zero_()
    v, components = cnn.components(x, texts)
    torch.testing.assert_close(components.sum(1), v)


def test_spread_vectors_have_mean_0_and_variance_1_and_what_never_varies_stays() -> None:
    cnn = filled(SentenceCNN(4, filters=5, depth=3, width=3, k_top=2, n_s=6)).double()
    with torch.no_grad():
        cnn.W.weight[2] = 0
    texts = Texts(torch.zeros(9, 9, dtype=torch.long), torch.arange(1, 10))
    x = torch.randn(9, 9, 4, generator=torch.Generator().manual_seed(1)).double()
    before = cnn.z(x, texts)
    cnn.spread(x, texts)
    after = cnn.z(x, texts)
    varies = [0, 1, 3, 4, 5]
    expected = (before - before.mean(0)) / before.std(0, correction=0)
    torch.testing.assert_close(after[:, varies], expected[:, varies])
    torch.testing.assert_close(after[:, 2], before[:, 2])
    assert all(p.grad_fn is None and p.requires_grad for p in cnn.parameters())
