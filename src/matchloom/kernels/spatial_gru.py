"""The native spatial GRU as a torch operator with its gradient, threaded over groups of pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from matchloom.kernels.native import Library, Task, library, run

Sizes = NDArray[np.int64]


def serves(s: Tensor, weights: Tensor) -> bool:
    """Whether the kernel can take these: on the CPU, float32 or, where no gradient is wanted, float64; and a library
    that was built and loads."""
    wanted = torch.is_grad_enabled() and (s.requires_grad or weights.requires_grad)
    suits = s.device.type == "cpu" and s.dtype == weights.dtype
    suits = suits and (s.dtype == torch.float32 or (s.dtype == torch.float64 and not wanted))
    return suits and s.numel() > 0 and library() is not None


def spatial_gru(
    s: Tensor, m: Tensor, n: Tensor, gates: Tensor, gates_bias: Tensor, candidate: Tensor, candidate_bias: Tensor,
    *, reverse: bool,
) -> Tensor:  # fmt: skip
    """h where each pair's scan ends, (B, d); see `matchloom.layers.spatial_gru` for the arguments."""
    inputs = (s, gates, gates_bias, candidate, candidate_bias)
    keep = torch.is_grad_enabled() and any(x.requires_grad for x in inputs)  # all h are kept for the gradient alone
    # Both passes must cut the batch alike, whatever torch's threads are when the gradient is taken.
    threads = torch.get_num_threads()
    # Where no gradient is wanted torch's operator has nothing to add, and its first call would take a second.
    forward = _forward if keep or torch.compiler.is_compiling() else _scan
    ends: Tensor = forward(s, m, n, gates, gates_bias, candidate, candidate_bias, reverse, threads, keep)[0]
    return ends


def groups(m: Sizes, n: Sizes, lanes: int, threads: int) -> list[Sizes]:
    """Pairs of like size together, at most `lanes` in a group, the largest groups first, enough for all threads.

    A group costs what its longest m and n cost, so that both must be alike: pairs are cut into strips by m, and each
    strip into groups by n.
    """
    B = len(m)
    count = max(-(-B // lanes), min(threads, -(-2 * B // lanes)))
    size = -(-B // count)
    strip = size * -(-count // math.isqrt(count))
    by_m = np.argsort(m, kind="stable")
    order = np.concatenate([x[np.argsort(n[x], kind="stable")] for x in np.split(by_m, range(strip, B, strip))])
    return sorted(np.split(order, range(size, B, size)), key=lambda x: -int(m[x].max() * n[x].max()))


class _Call:
    """The tasks of one call; holds on to every array whose address they have."""

    def __init__(
        self, loaded: Library, s: Tensor, m: Tensor, n: Tensor, weights: list[Tensor], reverse: bool, threads: int
    ) -> None:
        B, c, L, R = s.shape
        d = self.dimensions = len(weights[3])
        # Models give (B, L, C, R) in memory, where what a row needs lies together.
        self.s = s if s.transpose(1, 2).is_contiguous() else s.contiguous()
        self.weights = [x.contiguous() for x in weights]
        self.m, self.n = (np.ascontiguousarray(x.numpy(), dtype=np.int64) for x in (m, n))
        # The kernel trusts its sizes and types, so that they are checked here.
        shapes = [(7 * d, 3 * d + c), (7 * d,), (d, 3 * d + c), (d,)]
        if [tuple(x.shape) for x in weights] != shapes or any(x.dtype != s.dtype for x in weights):
            raise ValueError(f"s and weights must be of one type, weights of shapes {shapes}")
        if s.dtype not in (torch.float32, torch.float64):
            raise ValueError("s must be float32 or float64")
        for name, sizes, most in (("m", self.m, L), ("n", self.n, R)):
            if sizes.shape != (B,) or sizes.min() < 1 or sizes.max() > most:
                raise ValueError(f"{name} must have the shape ({B},) and lie in 1 to {most}")

        lanes = loaded.lanes if s.dtype == torch.float32 else loaded.lanes_double
        self.groups = groups(self.m, self.n, lanes(1 << 30), threads)
        self.h_sizes = [int((self.m[x].max() + 1) * (self.n[x].max() + 1)) * d * lanes(len(x)) for x in self.groups]
        addresses = [self.m.ctypes.data, self.n.ctypes.data, *(x.data_ptr() for x in (self.s, *self.weights))]
        self.tasks = [Task(c, *self.s.stride()[:3], d, reverse, len(x), x.ctypes.data, *addresses) for x in self.groups]

    def keep(self, h: Tensor) -> None:
        """Give every task its part of h."""
        for task, part in zip(self.tasks, torch.split(h, self.h_sizes), strict=True):
            task.h = part.data_ptr()


def _zeros_like(s: Tensor) -> Tensor:
    """Zeros in the order of s, which lies without gaps.

    The system hands them out as they are touched, on our threads. torch would write them on its own, which then spin
    for some milliseconds on the cores that ours need.
    """
    return torch.from_numpy(np.zeros(s.numel(), dtype=np.float32)).as_strided(s.shape, s.stride())


def _loaded() -> Library:
    loaded = library()
    assert loaded is not None, "the native kernel is absent"
    return loaded


def _scan(
    s: Tensor, m: Tensor, n: Tensor, gates: Tensor, gates_bias: Tensor, candidate: Tensor, candidate_bias: Tensor,
    reverse: bool, threads: int, keep: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The ends (B, d), and all h in the kernel's own order where they are to be kept."""
    loaded = _loaded()
    call = _Call(loaded, s, m, n, [gates, gates_bias, candidate, candidate_bias], reverse, threads)
    ends = s.new_empty(len(s), call.dimensions)
    h = s.new_empty(sum(call.h_sizes) if keep else 0)
    if keep:
        call.keep(h)
    for task in call.tasks:
        task.ends = ends.data_ptr()
    run(loaded.forward if s.dtype == torch.float32 else loaded.forward_double, call.tasks, threads, "spatial GRU")
    return ends, h


_WEIGHTS = "Tensor gates, Tensor gates_bias, Tensor candidate, Tensor candidate_bias"
_forward = torch.library.custom_op(
    "matchloom::spatial_gru",
    _scan,
    mutates_args=(),
    device_types="cpu",
    schema=f"(Tensor s, Tensor m, Tensor n, {_WEIGHTS}, bool reverse, int threads, bool keep) -> (Tensor, Tensor)",
)


@torch.library.custom_op(
    "matchloom::spatial_gru_backward",
    mutates_args=(),
    device_types="cpu",
    schema=f"(Tensor gradient, Tensor h, Tensor s, Tensor m, Tensor n, {_WEIGHTS}, bool reverse, int threads, "
    "bool wants_s) -> (Tensor, Tensor)",
)
def _backward(  # type: ignore[no-untyped-def]
    gradient, h, s, m, n, gates, gates_bias, candidate, candidate_bias, reverse, threads, wants_s
):
    """The gradients of s and, in one flat tensor, of the weights."""
    loaded = _loaded()
    weights = [gates, gates_bias, candidate, candidate_bias]
    if s.dtype != torch.float32:
        raise ValueError("the kernel has gradients in float32 alone")
    call = _Call(loaded, s, m, n, weights, reverse, threads)
    call.keep(h)
    gradient = gradient.contiguous()
    s_gradient = _zeros_like(call.s) if wants_s else s.new_empty(0)
    # Each group has sums of its own, added in a fixed order: which thread is first cannot change the result.
    sums = s.new_empty(len(call.groups), sum(x.numel() for x in weights))
    for task, own in zip(call.tasks, sums, strict=True):
        task.ends_gradient, task.weights_gradient = gradient.data_ptr(), own.data_ptr()
        task.s_gradient = s_gradient.data_ptr() if wants_s else None
    run(loaded.backward, call.tasks, threads, "spatial GRU")
    return s_gradient, sums.sum(0)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:7], output[1])
    ctx.reverse, ctx.threads = inputs[7:9]
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)  # else torch would write zeros as the gradient of h


def _differentiate(ctx: Any, gradient: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    *inputs, h = ctx.saved_tensors
    s_gradient, flat = _backward(gradient, h, *inputs, ctx.reverse, ctx.threads, ctx.needs_input_grad[0])
    weights = inputs[3:]
    parts = torch.split(flat, [x.numel() for x in weights])
    shaped = [part.view_as(x) for part, x in zip(parts, weights, strict=True)]
    return s_gradient if ctx.needs_input_grad[0] else None, None, None, *shaped, None, None, None


_forward.register_autograd(_differentiate, setup_context=_remember)


@_forward.register_fake
def _forward_shapes(  # type: ignore[no-untyped-def]
    s, m, n, gates, gates_bias, candidate, candidate_bias, reverse, threads, keep
):
    h = s.new_empty(torch.library.get_ctx().new_dynamic_size() if keep else 0)
    return s.new_empty(len(s), len(candidate_bias)), h


@_backward.register_fake
def _backward_shapes(  # type: ignore[no-untyped-def]
    gradient, h, s, m, n, gates, gates_bias, candidate, candidate_bias, reverse, threads, wants_s
):
    weights = (gates, gates_bias, candidate, candidate_bias)
    own = s if s.transpose(1, 2).is_contiguous() else s.contiguous()
    return torch.empty_like(own) if wants_s else s.new_empty(0), s.new_empty(sum(x.numel() for x in weights))
