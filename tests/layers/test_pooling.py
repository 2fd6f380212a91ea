"""k-max pooling against sorting."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from matchloom.layers.pooling import k_max, ordered_k_max
from tests.drawing import examples


@examples(60)
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 6), st.integers(1, 12), st.integers(0, 99)
)
def test_equals_sorting_the_valid_cells(B: int, C: int, L: int, R: int, k: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    # Few different values, so that there are ties.
    grid = torch.randint(-3, 4, (B, C, L, R), generator=generator).float()
    rows = torch.randint(1, L + 1, (B,), generator=generator)
    columns = torch.randint(1, R + 1, (B,), generator=generator)
    cells = (torch.arange(L) < rows[:, None])[:, :, None] & (torch.arange(R) < columns[:, None])[:, None, :]
    values, places = k_max(grid, cells, k)
    assert values.shape == places.shape == (B, C, k)
    for b in range(B):
        for c in range(C):
            best = sorted(grid[b, c][cells[b]].tolist(), reverse=True)[:k]
            assert values[b, c].tolist() == best + [0.0] * (k - len(best))
            found = places[b, c][: len(best)].tolist()
            assert len(set(found)) == len(found)
            assert [float(grid[b, c].flatten()[p]) for p in found] == best
            assert all(cells[b].flatten()[p] for p in found)
            assert (places[b, c][len(best) :] == -1).all()


def test_gradient_reaches_only_the_pooled_cells() -> None:
    grid = torch.randn(1, 2, 4, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    values, places = k_max(grid, torch.ones(1, 4, 5, dtype=torch.bool), 3)
    values.sum().backward()
    expected = torch.zeros(1, 2, 20).scatter(2, places, 1.0).view(1, 2, 4, 5)
    assert torch.equal(grid.grad, expected)


@examples(80)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 9), st.integers(0, 99), st.booleans())
def test_ordered_k_max_keeps_the_largest_in_their_order(N: int, C: int, P: int, seed: int, double: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-3, 4, (N, P, C), generator=generator).to(torch.double if double else torch.float)
    lengths = torch.randint(1, P + 1, (N,), generator=generator)
    k = torch.randint(1, P + 3, (N,), generator=generator)
    values, counts = ordered_k_max(x, lengths, k)
    assert counts.tolist() == [min(a, b) for a, b in zip(k.tolist(), lengths.tolist(), strict=True)]
    for n in range(N):
        for c in range(C):
            row = x[n, : lengths[n], c].tolist()
            best = sorted(sorted(range(len(row)), key=lambda t: (-row[t], t))[: int(k[n])])
            assert values[n, : counts[n], c].tolist() == [row[t] for t in best]


def test_ordered_k_max_sends_gradients_to_what_it_kept() -> None:
    x = torch.tensor([[[3.0], [1.0], [2.0], [9.0]]], requires_grad=True)
    values, _ = ordered_k_max(x, torch.tensor([3]), torch.tensor([2]))
    assert values.tolist() == [[[3.0], [2.0]]]
    (values[0, :, 0] * torch.tensor([5.0, 7.0])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[[5.0], [0.0], [7.0], [0.0]]]
