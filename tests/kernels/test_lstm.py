"""The native LSTM, every build that this processor runs, against torch's in double precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from matchloom.kernels import native
from matchloom.kernels.lstm import distinct_words, lstm

pytestmark = pytest.mark.skipif(native.library() is None, reason="the native kernels are absent or switched off")
SIZES = [(1, 1, 1, 1), (5, 7, 4, 3), (1, 3, 50, 50), (33, 9, 20, 17), (70, 12, 50, 50), (40, 5, 3, 64)]
NAMES = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


def weights_of(layer: nn.LSTM) -> list[nn.Parameter]:
    ways = ("", "_reverse") if layer.bidirectional else ("",)
    return [getattr(layer, name + way) for way in ways for name in NAMES]


def layers(D: int, H: int, bidirectional: bool) -> tuple[nn.LSTM, nn.LSTM]:
    """One in float32 and the same in double precision, with weights that are far from 0."""
    torch.manual_seed(D + H)
    single = nn.LSTM(D, H, batch_first=True, bidirectional=bidirectional)
    double = nn.LSTM(D, H, batch_first=True, bidirectional=bidirectional).double()
    with torch.no_grad():
        for weight in single.parameters():
            weight.mul_(3)
    double.load_state_dict({name: weight.double() for name, weight in single.state_dict().items()})
    return single, double


def texts(N: int, L: int, D: int) -> tuple[Tensor, Tensor]:
    return torch.randn(N, L, D, requires_grad=True), torch.randint(1, L + 1, (N,))


def packed_states(layer: nn.LSTM, x: Tensor, lengths: Tensor) -> Tensor:
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    states: Tensor = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=x.shape[1])[0]
    return states


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_states_and_gradients_are_torchs(sizes: tuple[int, int, int, int], bidirectional: bool) -> None:
    N, L, D, H = sizes
    single, double = layers(D, H, bidirectional)
    x, lengths = texts(N, L, D)
    exact = x.detach().double().requires_grad_()
    states, expected = lstm(x, lengths, weights_of(single)), packed_states(double, exact, lengths)
    torch.testing.assert_close(states.double(), expected, rtol=0, atol=1e-6)
    up = torch.randn_like(states)
    found = torch.autograd.grad(states, [x, *weights_of(single)], up)
    wanted = torch.autograd.grad(expected, [exact, *weights_of(double)], up.double())
    for own, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(own.double(), other, rtol=1e-5, atol=1e-5 * float(1 + other.abs().max()))


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_text_has_the_same_states_in_any_batch(threads: int) -> None:
    single, _ = layers(50, 50, True)
    x, lengths = texts(45, 11, 50)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            states = lstm(x, lengths, weights_of(single))
            for n, length in enumerate(lengths.tolist()):
                alone = lstm(x[n : n + 1, :length], lengths[n : n + 1], weights_of(single))
                assert torch.equal(alone[0], states[n, :length])
                assert not states[n, length:].any()
    finally:
        torch.set_num_threads(before)


@pytest.mark.usefixtures("build")
def test_the_last_word_comes_first_in_reverse() -> None:
    single, _ = layers(6, 5, False)
    x, lengths = texts(4, 8, 6)
    lengths[:] = 8
    found = lstm(x, lengths, weights_of(single), reverse=True)
    torch.testing.assert_close(found.flip(1), lstm(x.flip(1), lengths, weights_of(single)))


def test_words_that_need_no_gradient_get_none() -> None:
    single, _ = layers(6, 5, True)
    x, lengths = texts(4, 8, 6)
    weights = weights_of(single)
    wanted = torch.autograd.grad(lstm(x, lengths, weights).sum(), weights)
    found = torch.autograd.grad(lstm(x.detach(), lengths, weights).sum(), weights)
    assert all(torch.equal(*pair) for pair in zip(found, wanted, strict=True))


def test_wrong_sizes_are_refused() -> None:
    single, double = layers(6, 5, False)
    x, lengths = texts(4, 8, 6)
    for bad in (lengths[:2], lengths * 0, lengths + 8):
        with pytest.raises(ValueError, match="lengths must"):
            lstm(x, bad, weights_of(single))
    for weights in (weights_of(double), weights_of(layers(7, 5, False)[0])):
        with pytest.raises(ValueError, match="weights must"):
            lstm(x, lengths, weights)


def often(N: int, L: int, D: int) -> tuple[nn.Embedding, Tensor, Tensor]:
    """Word vectors, texts of few distinct words, and lengths."""
    torch.manual_seed(N)
    return nn.Embedding(60, D), torch.randint(0, 60, (N, L)) * 1_000_003 % 60, torch.randint(1, L + 1, (N,))


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_distinct_words_make_the_same_states_and_gradients(bidirectional: bool, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for N, L, D, H in ((70, 12, 50, 50), (33, 40, 20, 17), (3, 200, 7, 5)):
            single, double = layers(D, H, bidirectional)
            table, ids, lengths = often(N, L, D)
            found = distinct_words(ids)
            assert found is not None
            weights, up = weights_of(single), torch.randn(N, L, H * (1 + bidirectional))
            states = lstm(table(found[0]), lengths, weights, words=found[1])
            assert torch.equal(states, lstm(table(ids), lengths, weights))
            exact = table.weight.detach().double().requires_grad_()
            expected = packed_states(double, exact[ids], lengths)
            own = torch.autograd.grad(states, [table.weight, *weights], up)
            wanted = torch.autograd.grad(expected, [exact, *weights_of(double)], up.double())
            for one, other in zip(own, wanted, strict=True):
                torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5 * float(1 + other.abs().max()))
    finally:
        torch.set_num_threads(before)


def test_distinct_words_are_found_once_each() -> None:
    _, ids, _ = often(30, 20, 1)
    ids = ids * 701  # and words of which none occur between them
    found = distinct_words(ids)
    assert found is not None
    distinct, places = found
    assert distinct.tolist() == sorted(set(ids.flatten().tolist()))
    assert torch.equal(distinct[places], ids)
    assert distinct_words(torch.arange(10_000).view(100, 100)) is None  # no word occurs twice
    assert distinct_words(ids[:1]) is None  # too few
    assert distinct_words(ids - 1) is None  # what is no word is for the table to refuse
    assert distinct_words(ids * 2**40) is None


def test_words_outside_the_table_are_refused() -> None:
    single, _ = layers(6, 5, False)
    x, lengths = torch.randn(7, 6), torch.tensor([2, 1])
    for bad in (torch.tensor([[0, 7], [1, 2]]), torch.tensor([[0, -1], [1, 2]]), torch.zeros(2, 2, dtype=torch.int32)):
        with pytest.raises(ValueError, match="words must"):
            lstm(x, lengths, weights_of(single), words=bad)
