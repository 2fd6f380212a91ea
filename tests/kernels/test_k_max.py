"""The native k-max pooling, every build that this processor runs, against torch."""

from __future__ import annotations

import pytest
import torch

from matchloom.kernels import k_max, native
from matchloom.layers.pooling import ordered_places

pytestmark = pytest.mark.skipif(native.library() is None, reason="the native kernels are absent or switched off")


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("seed", range(12))
def test_it_finds_what_torch_finds(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    N, P, C = (int(torch.randint(1, most, (1,), generator=draw)) for most in (6, 70, 40))
    ties = bool(seed % 2)
    x = torch.randint(-9, 9, (N, P, C), generator=draw).float() if ties else torch.randn(N, P, C, generator=draw)
    lengths = torch.randint(1, P + 1, (N,), generator=draw)
    counts = torch.minimum(lengths, torch.randint(1, P + 3, (N,), generator=draw))
    found, expected = k_max.places(x, lengths, counts), ordered_places(x, lengths, counts)
    assert found.shape == expected.shape
    for n, count in enumerate(counts.tolist()):
        assert torch.equal(found[n, :count], expected[n, :count])
    assert bool((found < P).all())


@pytest.mark.usefixtures("build")
def test_it_stays_inside_where_a_network_has_diverged() -> None:
    x = torch.randn(3, 9, 20)
    x[0] = torch.nan
    x[1, ::2] = torch.nan
    x[2, 3:] = torch.inf
    found = k_max.places(x, torch.tensor([9, 8, 9]), torch.tensor([4, 4, 5]))
    assert bool(((found >= 0) & (found < 9)).all())


def test_wrong_sizes_are_refused() -> None:
    x, two = torch.zeros(2, 3, 4), torch.tensor([3, 3])
    for bad in (torch.tensor([4, 3]), torch.tensor([0, 1]), torch.tensor([1])):
        with pytest.raises(ValueError, match="counts must"):
            k_max.places(x, two, bad)
    with pytest.raises(ValueError, match="lengths at most 3"):
        k_max.places(x, torch.tensor([3, 4]), two)
    with pytest.raises(ValueError, match="float32"):
        k_max.places(x.double(), two, two)
