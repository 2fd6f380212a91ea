"""Texts that meet by the native kernels, every build that this processor runs, against torch in double precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from matchloom.batches import Lexical, PairBatch, Texts
from matchloom.kernels import interact, native, products
from matchloom.kernels.interact import Meeting
from matchloom.layers.lexical import exact_matches
from matchloom.layers.pooling import k_max

pytestmark = pytest.mark.skipif(native.library() is None, reason="the native kernels are absent or switched off")
# left texts, right texts, left words, right words, numbers, channels, pairs, k
SIZES = [
    (1, 30, 10, 50, 20, 1, 30, 5),
    (4, 5, 70, 130, 50, 1, 20, 3),
    (6, 6, 9, 7, 11, 4, 20, 5),
    (1, 8, 20, 21, 33, 3, 8, 2),
    (3, 2, 1, 1, 5, 2, 4, 5),
]


def texts(count: int, words: int) -> Texts:
    return Texts(torch.zeros(count, words, dtype=torch.int64), torch.randint(1, words + 1, (count,)))


def drawn(sizes: tuple[int, ...]) -> tuple[Meeting, Tensor]:
    """What meets, and its cells in double precision, 0 outside."""
    N, M, L, R, E, C, B, _ = sizes
    torch.manual_seed(L + R)
    batch = PairBatch(texts(N, L), texts(M, R), torch.randint(N, (B,)), torch.arange(B) % M)
    left, right = torch.randn(N, L, E), torch.randn(M, R, E)
    form = torch.randn(E + 1, C, E + 1) / E if C > 1 else None
    u, v = left.double()[batch.left_rows], right.double()[batch.right_rows]
    if form is None:
        cells = (u @ v.transpose(1, 2))[:, None]
    else:
        u, v = pad(u, (0, 1), value=1.0), pad(v, (0, 1), value=1.0)
        cells = torch.einsum("ble,ecf,brf->bclr", u, form.double(), v).relu()
    return Meeting(left, right, batch, form, C > 1), cells * batch.cells[:, None]


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_cells_and_their_largest_are_torchs(sizes: tuple[int, ...]) -> None:
    meeting, expected = drawn(sizes)
    k, cells = sizes[-1], interact.grid(meeting)
    torch.testing.assert_close(cells.double(), expected, rtol=1e-5, atol=1e-4)
    values, places = interact.k_largest(meeting, k)
    wanted, there = k_max(cells, meeting.batch.cells, k)
    assert torch.equal(values, wanted)
    assert torch.equal(places < 0, there < 0)
    at = cells.flatten(2).gather(2, places.clamp_min(0))
    assert torch.equal(at.masked_fill(places < 0, 0.0), values)


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("together", [False, True], ids=["two tensors", "one tensor"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_gradient_of_the_largest_is_torchs(sizes: tuple[int, ...], together: bool) -> None:
    meeting, _ = drawn(sizes)
    k, batch = sizes[-1], meeting.batch
    if together:  # both sides are rows of one, as MV-LSTM reads them
        width = max(meeting.left.shape[1], meeting.right.shape[1])
        both = torch.cat([pad(x, (0, 0, 0, width - x.shape[1])) for x in (meeting.left, meeting.right)])
        of_both = Texts(
            torch.zeros(len(both), width, dtype=torch.int64), torch.cat([batch.left.lengths, batch.right.lengths])
        )
        batch = PairBatch(of_both, of_both, batch.left_rows, batch.right_rows + len(meeting.left))
        meeting = meeting._replace(left=both, right=both, batch=batch)
    given = [x for x in (meeting.left, None if together else meeting.right, meeting.form) if x is not None]
    for x in given:
        x.requires_grad_()
    values, places = interact.k_largest(meeting, k)
    up = torch.randn(values.shape)
    found = torch.autograd.grad(values, given, up)
    u, v = meeting.left.double()[batch.left_rows], meeting.right.double()[batch.right_rows]
    if meeting.form is None:
        cells = (u @ v.transpose(1, 2))[:, None]
    else:
        u, v = pad(u, (0, 1), value=1.0), pad(v, (0, 1), value=1.0)
        cells = torch.einsum("ble,ecf,brf->bclr", u, meeting.form.double(), v).relu()
    at = cells.flatten(2).gather(2, places.clamp_min(0)).masked_fill(places < 0, 0.0)
    wanted = torch.autograd.grad(at, given, up.double())
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5 * float(1 + other.abs().max()))


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_pair_is_the_same_in_any_batch(sizes: tuple[int, ...]) -> None:
    meeting, _ = drawn(sizes)
    k, batch = sizes[-1], meeting.batch
    values, _ = interact.k_largest(meeting, k)
    for n in range(len(batch)):
        left, right = batch.left.take(batch.left_rows[n : n + 1]), batch.right.take(batch.right_rows[n : n + 1])
        L, R, zero = int(left.lengths), int(right.lengths), torch.zeros(1, dtype=torch.int64)
        alone = meeting._replace(
            left=meeting.left[batch.left_rows[n], :L][None],
            right=meeting.right[batch.right_rows[n], :R][None],
            batch=PairBatch(
                Texts(left.words[:, :L], left.lengths), Texts(right.words[:, :R], right.lengths), zero, zero
            ),
        )
        assert torch.equal(interact.k_largest(alone, k)[0][0], values[n])


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("sizes", SIZES[:2], ids=str)
def test_sums_of_kernels_and_their_gradient_are_torchs(sizes: tuple[int, ...]) -> None:
    meeting, _ = drawn(sizes)
    batch, mu, sigma = meeting.batch, torch.tensor([1.0, 0.9, 0.5, -0.5]), torch.tensor([0.001, 0.1, 0.1, 0.1])
    left, right = (products.l2_normalize_rows(x).requires_grad_() for x in (meeting.left, meeting.right))
    exact = [x.detach().double().requires_grad_() for x in (left, right)]
    M = exact[0][batch.left_rows] @ exact[1][batch.right_rows].transpose(1, 2)
    apart = (M[:, None] - mu.double()[:, None, None]) / sigma.double()[:, None, None]
    expected = (torch.exp(-apart.square() / 2) * batch.cells[:, None]).sum(3)
    found = interact.kernel_sums(Meeting(left, right, batch), mu, sigma)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)
    up = torch.randn_like(found)
    wanted = torch.autograd.grad(expected, exact, up.double())
    for own, other in zip(torch.autograd.grad(found, [left, right], up), wanted, strict=True):
        torch.testing.assert_close(own.double(), other, rtol=1e-4, atol=1e-5 * float(1 + other.abs().max()))


@pytest.mark.usefixtures("build")
def test_a_diverged_network_shows() -> None:
    meeting, _ = drawn(SIZES[1])
    meeting.left[:, 0] = torch.nan
    assert interact.k_largest(meeting, 3)[0].isnan().any(2).all()


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("seed", range(4))
def test_exact_matches_are_those_of_the_grid(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    N, M, L, R, B, k = 4, 5, 12, 9, 11, 4

    def side(count: int, words: int) -> Texts:
        lengths = torch.randint(1, words + 1, (count,), generator=draw)
        keys = torch.randint(1, 9, (count, 3, words), generator=draw)
        found = Lexical(keys, torch.rand(count, 3, words, generator=draw))
        return Texts(keys[:, 0], lengths, found)

    left, right = side(N, L), side(M, R)
    batch = PairBatch(left, right, torch.arange(B) % N, torch.arange(B) % M)
    matches = exact_matches(batch)
    assert left.lexical is not None
    assert right.lexical is not None
    values, sums = interact.exact_match_sums(left.lexical, right.lexical, batch, k)
    assert torch.equal(values.float(), k_max(matches, batch.cells, k)[0])
    torch.testing.assert_close(sums[..., 0].float(), matches.sum((2, 3)))
    torch.testing.assert_close(sums[..., 1].float(), matches.square().sum((2, 3)))


def test_wrong_sizes_are_refused() -> None:
    meeting, _ = drawn(SIZES[2])
    with pytest.raises(ValueError, match="do not fit"):
        interact.grid(meeting._replace(right=meeting.right[..., :-1]))
    with pytest.raises(ValueError, match="rows must lie"):
        interact.grid(meeting._replace(right=meeting.right[:2]))
    with pytest.raises(ValueError, match="lengths in"):
        interact.grid(meeting._replace(left=meeting.left[:, :1]))
