"""The native LSTM, in one direction or both, as a torch function with its gradient, threaded over groups of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from matchloom.kernels.native import Library, LstmTask, library, run

WEIGHTS = 4  # of a direction, as nn.LSTM has them: weight_ih, weight_hh, bias_ih, bias_hh


def serves(x: Tensor) -> bool:
    """Whether the kernel can take x: float32 on the CPU, and a library that was built and loads."""
    suits = x.device.type == "cpu" and x.dtype == torch.float32 and x.numel() > 0
    return suits and not torch.compiler.is_compiling() and library() is not None


def lstm(x: Tensor, lengths: Tensor, weights: Sequence[Tensor], *, reverse: bool = False) -> Tensor:
    """The states of each text's own words, 0 behind them. (N, L, D), (N,) -> (N, L, H), or (N, L, 2H) of two directions

    Four weights make one direction, which starts at each text's last word if `reverse`; eight make two, the second of
    which does. A text's states depend on the text alone, to the last bit.
    """
    if torch.is_grad_enabled() and any(one.requires_grad for one in (x, *weights)):
        found: Tensor = _Function.apply(x, lengths, reverse, *weights)  # type: ignore[no-untyped-call]
        return found
    return _Call(x, lengths, weights, reverse).forward(keep=False)[0]


class _Call:
    """The tasks of one call; holds on to every array whose address they have."""

    def __init__(self, x: Tensor, lengths: Tensor, weights: Sequence[Tensor], reverse: bool) -> None:
        loaded = library()
        assert loaded is not None, "the native kernel is absent"
        self.loaded: Library = loaded
        N, L, D = x.shape
        H = weights[1].shape[1]
        self.directions = len(weights) // WEIGHTS
        self.x, self.weights = x.contiguous(), [one.detach().contiguous() for one in weights]
        self.lengths = np.ascontiguousarray(lengths.numpy(), dtype=np.int64)
        # The kernel trusts its sizes and types, so that they are checked here.
        shapes = [(4 * H, D), (4 * H, H), (4 * H,), (4 * H,)] * self.directions
        if [tuple(one.shape) for one in weights] != shapes or any(one.dtype != torch.float32 for one in (x, *weights)):
            raise ValueError(f"x and weights must be float32, weights of shapes {shapes}")
        if self.lengths.shape != (N,) or self.lengths.min() < 1 or self.lengths.max() > L:
            raise ValueError(f"lengths must have the shape ({N},) and lie in 1 to {L}")
        self.D, self.H, self.threads = D, H, torch.get_num_threads()
        self.packed = torch.empty(self.directions, loaded.lstm_packed(D, H))
        for one, own in enumerate(self.packed):
            loaded.lstm_pack(*(w.data_ptr() for w in self._of(one)), D, H, own.data_ptr())
        self.groups = self._groups(loaded.lanes(1 << 30))
        self.kept = [loaded.lstm_kept(H, self.directions, len(g), int(self.lengths[g[0]])) for g in self.groups]
        about = (D, H, self.directions, reverse, L)
        places = (self.lengths.ctypes.data, self.x.data_ptr(), self.packed.data_ptr())
        self.tasks = [LstmTask(*about, len(g), g.ctypes.data, *places) for g in self.groups]

    def _of(self, direction: int) -> list[Tensor]:
        return self.weights[direction * WEIGHTS : (direction + 1) * WEIGHTS]

    def _groups(self, lanes: int) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
        """Texts of like length together, the longest first; enough groups for all threads."""
        order = np.argsort(-self.lengths, kind="stable")
        groups = max(-(-len(order) // lanes), min(self.threads, -(-2 * len(order) // lanes)))
        return np.array_split(order, groups)

    def forward(self, *, keep: bool) -> tuple[Tensor, Tensor | None]:
        """The states, and in the kernel's own order what the gradient needs of them."""
        N, L, _ = self.x.shape
        h = torch.empty(N, L, self.directions * self.H)
        kept = torch.empty(sum(self.kept)) if keep else None
        self._give(h, kept)
        run(self.loaded.lstm_forward, self.tasks, self.threads, "LSTM")
        return h, kept

    def _give(self, h: Tensor, kept: Tensor | None) -> None:
        starts = np.cumsum([0, *self.kept[:-1]])
        for task, start in zip(self.tasks, starts.tolist(), strict=True):
            task.h = h.data_ptr()
            task.kept = None if kept is None else kept.data_ptr() + 4 * start

    def backward(self, gradient: Tensor, h: Tensor, kept: Tensor, wants_x: bool) -> tuple[Tensor | None, list[Tensor]]:
        """The gradients of x, where it is wanted, and of all weights."""
        D, H, loaded = self.D, self.H, self.loaded
        turned = torch.empty(self.directions, loaded.lstm_turned(D, H))
        for one, own in enumerate(turned):
            loaded.lstm_turn(*(w.data_ptr() for w in self._of(one)[:2]), D, H, own.data_ptr())
        gradient = gradient.contiguous()
        x_gradient = torch.empty_like(self.x) if wants_x else None
        # Each group has sums of its own, added in a fixed order: which thread is first cannot change the result.
        sums = torch.empty(len(self.groups), self.directions, 4 * H, loaded.lstm_gradient(D, H) // (4 * H))
        self._give(h, kept)
        for task, own in zip(self.tasks, sums, strict=True):
            task.turned, task.h_gradient, task.weights_gradient = turned.data_ptr(), gradient.data_ptr(), own.data_ptr()
            task.x_gradient = None if x_gradient is None else x_gradient.data_ptr()
        run(loaded.lstm_backward, self.tasks, self.threads, "LSTM")
        weights = []
        for own in sums.sum(0):
            bias = own[:, D + H].contiguous()
            weights += [own[:, :D].contiguous(), own[:, D : D + H].contiguous(), bias, bias.clone()]
        return x_gradient, weights


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, lengths: Tensor, reverse: bool, *weights: Tensor) -> Tensor:
        call = _Call(x, lengths, weights, reverse)
        h, kept = call.forward(keep=True)
        ctx.save_for_backward(h)
        ctx.call, ctx.kept = call, kept
        return h

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weights = ctx.call.backward(gradients[0], *ctx.saved_tensors, ctx.kept, ctx.needs_input_grad[0])
        return x, None, None, *weights
