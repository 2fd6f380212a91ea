"""Words into one vector for each position, h_t, by LSTMs without peepholes (Graves et al., 2013).

On the CPU a native kernel reads them where it was built, texts of like length together and no padding; torch's own LSTM
serves everywhere else. In the copy of a model that scores (`single`) the kernel serves too: it computes in float32, but
a text's states are the same in any batch, to the last bit, which is what the copy is in double precision for.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.onnx import is_in_onnx_export

from matchloom.batches import DistinctWords
from matchloom.kernels import lstm as native


class LSTM(nn.Module):
    """One LSTM read from the left, or with `reverse` from each text's own last word to its first.

    Padding lies behind each text in either case, so that it is only ever read after the last word and no packing
    is needed: the states at padded positions are meaningless and nothing may use them.
    """

    single = False  # set in the copy that scores

    def __init__(self, size: int, hidden: int, *, reverse: bool = False) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, batch_first=True)
        self.reverse = reverse

    def forward(self, x: Tensor | DistinctWords, lengths: Tensor) -> Tensor:
        """Vectors (N, L, D) to states (N, L, H)."""
        states = native_states(x, lengths, [self], single=self.single)
        if states is not None:
            return states.to((x if isinstance(x, Tensor) else x.vectors).dtype)
        if not isinstance(x, Tensor):
            x = x.spread()
        if not self.reverse:
            return self.lstm(x)[0]  # type: ignore[no-any-return]
        order = reversed_positions(lengths, x.shape[1])  # (N, L)
        states = self.lstm(take_positions(x, order))[0]
        return take_positions(states, order)  # reversing twice restores the order


class BiLSTM(nn.Module):
    """p_t = [forward h_t ; backward h_t], (N, L, 2H): the positional sentence representations of MV-LSTM."""

    single = False  # set in the copy that scores

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.forwards = LSTM(size, hidden)
        self.backwards = LSTM(size, hidden, reverse=True)

    def forward(self, x: Tensor | DistinctWords, lengths: Tensor) -> Tensor:
        """Vectors (N, L, D) to states (N, L, 2H), in float32 where the copy that scores reads by the kernel."""
        states = native_states(x, lengths, [self.forwards, self.backwards], single=self.single)
        if states is not None:
            return states
        if not isinstance(x, Tensor):
            x = x.spread()
        return torch.cat([self.forwards(x, lengths), self.backwards(x, lengths)], dim=2)


def native_states(
    x: Tensor | DistinctWords, lengths: Tensor, readers: Sequence[LSTM], *, single: bool
) -> Tensor | None:
    """The states of one reader or of two, side by side, by the native kernel; None where it does not serve."""
    if is_in_onnx_export():
        return None
    x, words = (x, None) if isinstance(x, Tensor) else x
    weights: list[Tensor] = [weight for reader in readers for weight in reader.lstm.parameters()]
    if single:  # numbers of double precision that came from single
        x, weights = x.float(), [weight.float() for weight in weights]
    if not native.serves(x) or weights[0].dtype != x.dtype:
        return None
    return native.lstm(x, lengths, weights, reverse=readers[0].reverse, words=words)


def reversed_positions(lengths: Tensor, width: int) -> Tensor:
    """For each text the positions length-1 ... 0, then its padding where it was. (N, width)"""
    positions = torch.arange(width, device=lengths.device)
    mirrored = lengths[:, None] - 1 - positions
    return torch.where(mirrored >= 0, mirrored, positions)


def take_positions(x: Tensor, order: Tensor) -> Tensor:
    """x[n, order[n, t]] for every n and t. (N, L, D), (N, T) -> (N, T, D)"""
    N, L, D = x.shape
    rows = (order + torch.arange(0, N * L, L, device=x.device)[:, None]).flatten()
    return x.flatten(0, 1).index_select(0, rows).view(N, -1, D)  # whole rows: several times faster than gather
