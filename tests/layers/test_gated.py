"""Gated convolutions against torch on maps that are padded with zeros as far as any window reaches."""

from __future__ import annotations

import torch
from torch.nn.functional import conv1d, conv2d, max_pool1d, max_pool2d, pad

from matchloom.layers.gated import GatedConvolution, GatedConvolution2d, pairs_max


def units(*shape: int) -> torch.Tensor:
    z = torch.relu(torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.double))
    z[1, :, 3:] = 0  # a map that ends earlier than the other
    return z


def test_windows_begin_at_every_unit_and_silent_ones_stay_silent() -> None:
    torch.manual_seed(0)
    layer, z = GatedConvolution(4, 5, 3).double(), units(2, 4, 7)
    far = pad(z, (0, 9))
    weight = layer.W.weight.view(5, 3, 4).transpose(1, 2)
    g = conv1d(far.sum(1, keepdim=True), torch.ones(1, 1, 3).double()) > 0
    expected = torch.relu(conv1d(far, weight, layer.W.bias)) * g  # (2, 5, 14)
    torch.testing.assert_close(layer(z.transpose(1, 2)).transpose(1, 2), expected[:, :, :7])
    assert not expected[:, :, 7:].any()
    torch.testing.assert_close(
        pairs_max(expected[:, :, :7].transpose(1, 2)).transpose(1, 2), max_pool1d(expected[:, :, :8], 2)
    )


def test_the_same_over_maps_in_either_layout() -> None:
    torch.manual_seed(0)
    layer, z = GatedConvolution2d(4, 5, 3).double(), units(2, 4, 7, 6)
    far = pad(z, (0, 9, 0, 9))
    g = max_pool2d(far.amax(1, keepdim=True), 3, 1) > 0
    expected = torch.relu(conv2d(far, layer.W.weight, layer.W.bias)) * g
    sizes = torch.tensor([7, 7]), torch.tensor([6, 6])
    torch.testing.assert_close(layer(z, *sizes), expected[:, :, :7, :6])
    torch.testing.assert_close(layer(z.contiguous(memory_format=torch.channels_last), *sizes), expected[:, :, :7, :6])
    assert not expected[:, :, 7:].any()
    assert not expected[:, :, :, 6:].any()


def test_an_odd_last_unit_is_pooled_alone() -> None:
    z = torch.tensor([[[-3.0], [-4.0], [-5.0]]])
    assert pairs_max(z, -torch.inf).flatten().tolist() == [-3.0, -5.0]
    assert pairs_max(z).flatten().tolist() == [-3.0, 0.0]
