"""Reversal by length, and LSTMs that never read padding."""

from __future__ import annotations

import torch

from matchloom.layers.recurrence import LSTM, BiLSTM, reversed_positions


def test_each_text_is_reversed_within_its_own_length() -> None:
    order = reversed_positions(torch.tensor([3, 1, 4]), 4)
    assert order.tolist() == [[2, 1, 0, 3], [0, 1, 2, 3], [3, 2, 1, 0]]


def test_equals_torch_on_packed_sequences() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.LSTM(4, 3, batch_first=True, bidirectional=True)
    ours = BiLSTM(4, 3)
    for part, suffix in ((ours.forwards, ""), (ours.backwards, "_reverse")):
        for name, parameter in part.lstm.named_parameters():
            parameter.data.copy_(getattr(theirs, name + suffix))
    x, lengths = torch.randn(5, 7, 4), torch.tensor([7, 1, 4, 2, 7])
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    valid = torch.arange(7) < lengths[:, None]
    torch.testing.assert_close(ours(x, lengths)[valid], expected[valid])


def test_what_lies_behind_a_text_is_never_read() -> None:
    torch.manual_seed(0)
    reader = LSTM(4, 3, reverse=True)
    x, lengths = torch.randn(1, 6, 4), torch.tensor([4])
    other = x.clone()
    other[:, 4:] = 9.0
    assert torch.equal(reader(x, lengths)[:, :4], reader(other, lengths)[:, :4])
