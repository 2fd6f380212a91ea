"""The native LSTM, in one direction or both, as a torch function with its gradient, threaded over groups of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from matchloom.kernels.native import Library, LstmTask, library, run
from matchloom.kernels.products import product

WEIGHTS = 4  # of a direction, as nn.LSTM has them: weight_ih, weight_hh, bias_ih, bias_hh

_FEW = 512  # words for which the products of distinct ones cost more than they save
_SAVES = 0.8  # and if more of them than that are distinct


def serves(x: Tensor) -> bool:
    """Whether the kernel can take x: float32 on the CPU, and a library that was built and loads."""
    suits = x.device.type == "cpu" and x.dtype == torch.float32 and x.numel() > 0
    return suits and not torch.compiler.is_compiling() and library() is not None


def lstm(
    x: Tensor, lengths: Tensor, weights: Sequence[Tensor], *, reverse: bool = False, words: Tensor | None = None
) -> Tensor:
    """The states of each text's own words, 0 behind them. (N, L, D), (N,) -> (N, L, H), or (N, L, 2H) of two directions

    Four weights make one direction, which starts at each text's last word if `reverse`; eight make two, the second of
    which does. With `words` (N, L), x (U, D) has the vectors of distinct words, and `words` says which stands where:
    their products are made once. A text's states depend on the text alone, to the last bit, in this case too.
    """
    if torch.is_grad_enabled() and any(one.requires_grad for one in (x, *weights)):
        found: Tensor = _Function.apply(x, words, lengths, reverse, *weights)  # type: ignore[no-untyped-call]
        return found
    return _Call(x, words, lengths, weights, reverse).forward(keep=False)[0]


def distinct_words(words: Tensor) -> tuple[Tensor, Tensor] | None:
    """The distinct ids (U,) among (N, L), in ascending order, and where each stands among them (N, L), for `lstm`.

    None where that saves it nothing.
    """
    loaded = library()
    if loaded is None or words.device.type != "cpu" or words.numel() < _FEW or torch.compiler.is_compiling():
        return None
    words = words.contiguous()
    found, places = torch.empty(words.numel(), dtype=torch.int64), torch.empty_like(words)
    count: int = loaded.distinct(words.data_ptr(), words.numel(), found.data_ptr(), places.data_ptr())
    if count == -1:
        raise MemoryError("the native LSTM ran out of memory")
    return None if count < 0 or count > _SAVES * words.numel() else (found[:count], places)


class _Call:
    """The tasks of one call; holds on to every array whose address they have."""

    def __init__(
        self, x: Tensor, words: Tensor | None, lengths: Tensor, weights: Sequence[Tensor], reverse: bool
    ) -> None:
        loaded = library()
        assert loaded is not None, "the native kernel is absent"
        self.loaded: Library = loaded
        self.words = None if words is None else words.contiguous()
        N, L = self.texts = x.shape[:2] if self.words is None else self.words.shape
        D = x.shape[-1]
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
        if self.words is not None and (
            self.words.dtype != torch.int64 or not 0 <= int(self.words.min()) <= int(self.words.max()) < len(x)
        ):
            raise ValueError(f"words must be int64 and lie in 0 to {len(x) - 1}")
        self.D, self.H, self.threads = D, H, torch.get_num_threads()
        self.packed = torch.empty(self.directions, loaded.lstm_packed(D, H))
        for one, own in enumerate(self.packed):
            loaded.lstm_pack(*(w.data_ptr() for w in self._of(one)), D, H, own.data_ptr())
        self.groups = self._groups(loaded.lanes(1 << 30))
        self.kept = [loaded.lstm_kept(H, self.directions, len(g), int(self.lengths[g[0]])) for g in self.groups]
        about = (D, H, self.directions, reverse, L)
        places = {"lengths": self.lengths.ctypes.data, "x": self.x.data_ptr(), "packed": self.packed.data_ptr()}
        self.tasks = [LstmTask(*about, len(g), g.ctypes.data, **places) for g in self.groups]

    def _of(self, direction: int) -> list[Tensor]:
        return self.weights[direction * WEIGHTS : (direction + 1) * WEIGHTS]

    def _groups(self, lanes: int) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
        """Texts of like length together, the longest first; enough groups for all threads."""
        order = np.argsort(-self.lengths, kind="stable")
        groups = max(-(-len(order) // lanes), min(self.threads, -(-2 * len(order) // lanes)))
        return np.array_split(order, groups)

    def forward(self, *, keep: bool) -> tuple[Tensor, Tensor | None]:
        """The states, and in the kernel's own order what the gradient needs of them."""
        h = torch.empty(*self.texts, self.directions * self.H)
        kept = torch.empty(sum(self.kept)) if keep else None
        self._give(kept, h)
        if self.words is not None:
            projected = self._projected()
            for task in self.tasks:
                task.words, task.projected = self.words.data_ptr(), projected.data_ptr()
        run(self.loaded.lstm_forward, self.tasks, self.threads, "LSTM")
        return h, kept

    def _projected(self) -> Tensor:
        """What the sums of each distinct word begin with, as the forward pass reads it."""
        loaded, count = self.loaded, len(self.x)
        out = torch.empty(count, self.directions * loaded.lstm_gates(self.H))
        about = (self.D, self.H, self.directions, self.packed.data_ptr())

        def some(rows: tuple[int, int]) -> int:
            of_x, of_out = (one[rows[0]].data_ptr() for one in (self.x, out))
            failed: int = loaded.lstm_project(of_x, rows[1] - rows[0], *about, of_out)
            return failed

        step = -(-count // self.threads)
        run(some, [(n, min(count, n + step)) for n in range(0, count, step)], self.threads, "LSTM")
        return out

    def _give(self, kept: Tensor | None, h: Tensor | None = None) -> None:
        starts = np.cumsum([0, *self.kept[:-1]])
        for task, start in zip(self.tasks, starts.tolist(), strict=True):
            task.h = None if h is None else h.data_ptr()
            task.kept = None if kept is None else kept.data_ptr() + 4 * start

    def backward(self, gradient: Tensor, kept: Tensor, wants_x: bool) -> tuple[Tensor | None, list[Tensor]]:
        """The gradients of x, where it is wanted, and of all weights."""
        D, H, loaded = self.D, self.H, self.loaded
        turned = torch.empty(self.directions, loaded.lstm_turned(D, H))
        for one, own in enumerate(turned):
            loaded.lstm_turn(*(w.data_ptr() for w in self._of(one)[:2]), D, H, own.data_ptr())
        gradient = gradient.contiguous()
        # Groups that run side by side have sums of their own, added in a fixed order: which thread is first cannot
        # change the result.
        chains = np.array_split(np.arange(len(self.tasks)), min(self.threads, len(self.tasks)))
        gates = loaded.lstm_gradient(0, H) // (H + 1)  # numbers of a row of gates: 4H up to a whole vector
        words = None if self.words is None else self._words_rows(len(chains))
        x_gradient = torch.empty_like(self.x) if wants_x and words is None else None
        own_inputs = D if words is None else 0  # what the kernel makes of the weights' gradient
        sums = torch.zeros(len(chains), self.directions, own_inputs + H + 1, gates)
        self._give(kept)
        for number, (chain, own) in enumerate(zip(chains, sums, strict=True)):
            for task in (self.tasks[n] for n in chain):
                task.turned, task.h_gradient = turned.data_ptr(), gradient.data_ptr()
                task.weights_gradient = own.data_ptr()
                task.x_gradient = None if x_gradient is None else x_gradient.data_ptr()
                if self.words is not None and words is not None:
                    task.words, task.words_gradient = self.words.data_ptr(), words[number].data_ptr()
        run(lambda chain: any(loaded.lstm_backward(self.tasks[n]) for n in chain), chains, self.threads, "LSTM")
        weights = []
        for own in _sum(sums)[:, :, : 4 * H]:
            bias = own[own_inputs + H].contiguous()
            weights += [own[:own_inputs].T, own[own_inputs : own_inputs + H].T, bias, bias.clone()]
        del kept, gradient
        if words is not None:
            of_gates = _sum(words)
            weights[::WEIGHTS] = self._words_weights(of_gates)
            if wants_x:
                w = torch.cat(self.weights[::WEIGHTS])
                x_gradient = product(of_gates, pad(w, (0, 0, 0, of_gates.shape[1] - len(w))))
        return x_gradient, [one.contiguous() for one in weights]

    def _words_rows(self, chains: int) -> Tensor:
        """Zeros for the gates' gradients of the distinct words: of both directions, up to a whole vector."""
        gates, vector = self.directions * 4 * self.H, self.loaded.lanes(1)
        return torch.zeros(chains, len(self.x), -(-gates // vector) * vector)

    def _words_weights(self, of_gates: Tensor) -> list[Tensor]:
        """The gradients of each weight_ih (4H, D) from the gates' gradients of the distinct words (U, G)."""
        out = torch.empty(self.D, of_gates.shape[1])
        self.loaded.lstm_words_back(
            of_gates.data_ptr(), *of_gates.shape, self.x.data_ptr(), self.D, out.data_ptr()
        )  # fmt: skip
        return [out[:, n * 4 * self.H : (n + 1) * 4 * self.H].T for n in range(self.directions)]


def _sum(chains: Tensor) -> Tensor:
    return chains[0] if len(chains) == 1 else chains.sum(0)


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, words: Tensor | None, lengths: Tensor, reverse: bool, *weights: Tensor) -> Tensor:
        call = _Call(x, words, lengths, weights, reverse)
        h, kept = call.forward(keep=True)
        ctx.save_for_backward(kept)  # which torch frees behind the backward pass
        ctx.call = call
        return h

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weights = ctx.call.backward(gradients[0], *ctx.saved_tensors, ctx.needs_input_grad[0])
        return x, None, None, None, *weights
