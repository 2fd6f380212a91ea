"""How all words of two texts meet, and what is kept of it, by the native kernels: interact.cpp and matches.cpp.

A cell depends on its two words alone, to the last bit. No grid is written unless it is asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from matchloom.batches import Lexical, PairBatch
from matchloom.kernels.native import MeetTask, run
from matchloom.kernels.products import loaded, taken

_LN_2 = 0.6931471805599453
_FEW = 16  # pairs for which a second thread costs more than it saves


class Meeting(NamedTuple):
    """Two sides of a batch, (N, L, E) and (M, R, E), and with a form (E + 1, C, E + 1) what is between them.

    The sides may be rows of one tensor.

    A cell is u'v, or for each channel [u ; 1]' form [v ; 1]; `relu`: at least 0.
    """

    left: Tensor
    right: Tensor
    batch: PairBatch
    form: Tensor | None = None
    relu: bool = False


def k_largest(meeting: Meeting, k: int) -> tuple[Tensor, Tensor]:
    """The k largest cells of each channel in descending order, and their places l * R + r. (B, C, k) each

    Where a pair has fewer than k cells the missing values are 0 and their places -1. The gradient of the values reaches
    both sides and the form; it touches the words of these cells alone.
    """
    given = [x for x in (meeting.left, meeting.right, meeting.form) if x is not None]
    if torch.is_grad_enabled() and any(x.requires_grad for x in given):
        right = None if meeting.right is meeting.left else meeting.right
        found: tuple[Tensor, Tensor] = _KLargest.apply(  # type: ignore[no-untyped-call]
            meeting.left, right, meeting.form, meeting.batch, meeting.relu, k
        )
        return found
    return _k_largest(_Call(meeting), k)


def _k_largest(call: _Call, k: int) -> tuple[Tensor, Tensor]:
    shape = (len(call.sizes[0]), call.channels, k)
    values, places = call.left.new_empty(shape), torch.empty(shape, dtype=torch.int64)
    call.run(k=k, values=values.data_ptr(), places=places.data_ptr())
    return values, places


def grid(meeting: Meeting) -> Tensor:
    """All cells, 0 outside the texts. (B, C, L, R), laid out as (B, L, C, R)"""
    call = _Call(meeting)
    L, R = call.left.shape[1], call.right.shape[1]
    cells = call.left.new_empty(len(meeting.batch), L, call.channels, R)
    call.run(grid=cells.data_ptr())
    return cells.transpose(1, 2)


def kernel_sums(meeting: Meeting, mu: Tensor, sigma: Tensor) -> Tensor:
    """For each left word and kernel the sum over the right words of exp(-(cell - mu)^2 / (2 sigma^2)). (B, k, L)

    0 behind the left text. The gradient reaches both sides; it writes one number a cell.
    """
    needs = torch.is_grad_enabled() and (meeting.left.requires_grad or meeting.right.requires_grad)
    if not needs:
        return _kernel_sums(meeting, mu, sigma)
    found: Tensor = _KernelSums.apply(meeting.left, meeting.right, meeting.batch, mu, sigma)  # type: ignore[no-untyped-call]
    return found


def exact_match_sums(left: Lexical, right: Lexical, batch: PairBatch, k: int) -> tuple[Tensor, Tensor]:
    """The k largest IDFs of each slice of exact matches (B, 3, k), and the sums of all and of their squares (B, 3, 2).

    In double precision. `layers/lexical.py` says what a match is.
    """
    keys, others, idf = left.keys.contiguous(), right.keys.contiguous(), left.idf.double().contiguous()
    B, slices = len(batch), keys.shape[1]
    if others.shape[1] != slices or idf.shape != keys.shape:
        raise ValueError(f"keys and IDFs do not fit: {tuple(keys.shape)}, {tuple(idf.shape)}, {tuple(others.shape)}")
    sizes = _sizes(batch, (len(keys), keys.shape[2]), (len(others), others.shape[2]))
    values, sums = idf.new_empty(B, slices, k), idf.new_empty(B, slices, 2)
    loaded().matches(
        keys.data_ptr(), idf.data_ptr(), others.data_ptr(), slices, keys.shape[2], others.shape[2],
        *(x.data_ptr() for x in sizes), B, k, values.data_ptr(), sums.data_ptr(),
    )  # fmt: skip
    return values, sums


def _sizes(batch: PairBatch, left: tuple[int, int], right: tuple[int, int]) -> list[Tensor]:
    """The rows and lengths of a batch; the kernels trust them, so that they are checked here."""
    B, rows, lengths = len(batch), [batch.left_rows, batch.right_rows], [batch.left.lengths, batch.right.lengths]
    for own, of_text, (texts, words) in zip(rows, lengths, (left, right), strict=True):
        if {own.dtype, of_text.dtype} != {torch.int64} or own.shape != (B,) or len(of_text) < texts:
            raise ValueError("rows and lengths must be int64, one for each pair and one for each text")
        if B and not (
            0 <= int(own.min()) <= int(own.max()) < texts and 1 <= int(of_text.min()) <= int(of_text.max()) <= words
        ):
            raise ValueError(f"rows must lie in 0 to {texts - 1}, lengths in 1 to {words}")
    return [x.contiguous() for x in (*rows, *lengths)]


class _Call:
    """Holds on to every array whose address the tasks have."""

    def __init__(self, meeting: Meeting) -> None:
        self.left, self.right = taken(meeting.left, meeting.right)
        (N, L, E), (M, R, other) = self.left.shape, self.right.shape
        self.form = None if meeting.form is None else taken(meeting.form)[0]
        self.channels = 1 if self.form is None else self.form.shape[1]
        if other != E or (self.form is not None and self.form.shape != (E + 1, self.channels, E + 1)):
            raise ValueError(f"left, right and form do not fit: {tuple(self.left.shape)}, {tuple(self.right.shape)}")
        self.sizes = _sizes(meeting.batch, (N, L), (M, R))
        form = None if self.form is None else self.form.data_ptr()
        places = zip(("left_rows", "right_rows", "left_lengths", "right_lengths"), _places(self.sizes), strict=True)
        self.fields = {
            "size": E,
            "channels": self.channels,
            "left_width": L,
            "right_width": R,
            "left": self.left.data_ptr(),
            "right": self.right.data_ptr(),
            "form": form,
            "relu": meeting.relu,
            **dict(places),
        }

    def released(self) -> list[Tensor | None]:
        """Both sides and the form, which somebody else holds on to from now on."""
        found = [self.left, self.right, self.form]
        del self.left, self.right, self.form
        return found

    def run(self, **wanted: Any) -> None:
        """All pairs, in one part for each thread."""
        B, threads = len(self.sizes[0]), torch.get_num_threads()
        step = -(-B // threads) if B > _FEW else B
        tasks = [
            MeetTask(**self.fields, **wanted, begin=start, end=min(B, start + step)) for start in range(0, B, step or 1)
        ]
        run(loaded().meet, tasks, threads, "interaction")

    def back(self, **wanted: Any) -> None:
        """All pairs of the gradient, whose order decides its last digits."""
        run(loaded().meet_back, [MeetTask(**self.fields, **wanted, end=len(self.sizes[0]))], 1, "interaction")


class _KLargest(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, left: Tensor, right: Tensor | None, form: Tensor | None, batch: PairBatch, relu: bool, k: int
    ) -> tuple[Tensor, Tensor]:
        call = _Call(Meeting(left, left if right is None else right, batch, form, relu))
        values, places = _k_largest(call, k)
        ctx.save_for_backward(*call.released(), values, places)  # which torch frees behind the backward pass
        ctx.mark_non_differentiable(places)
        ctx.call, ctx.one = call, right is None
        return values, places

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        left, right, _, values, places = ctx.saved_tensors
        (up,), call, needs = taken(gradients[0]), ctx.call, ctx.needs_input_grad
        of_left = torch.zeros_like(left) if needs[0] else None
        of_right = of_left if ctx.one else torch.zeros_like(right) if needs[1] else None
        E, C = left.shape[2], call.channels
        of_form = up.new_zeros(C, E + 1, loaded().form_step(E)) if needs[2] else None
        wanted = {"values_gradient": up, "left_gradient": of_left, "right_gradient": of_right, "form_gradient": of_form}
        call.back(
            k=places.shape[2], values=values.data_ptr(), places=places.data_ptr(),
            **{name: None if x is None else x.data_ptr() for name, x in wanted.items()},
        )  # fmt: skip
        if of_form is not None:
            of_form = of_form[:, :, : E + 1].transpose(0, 1)
        return of_left, None if ctx.one else of_right, of_form, None, None, None


def _places(tensors: list[Tensor]) -> list[int]:
    return [x.data_ptr() for x in tensors]


def _kernels(mu: Tensor, sigma: Tensor) -> tuple[list[Tensor], dict[str, Any]]:
    """The kernels as the native code takes them, to be held on to, and its fields."""
    own = taken(mu.float(), (-1 / (2 * _LN_2 * sigma.double().square())).float())
    return own, {"kernels": len(mu), "mu": own[0].data_ptr(), "scale": own[1].data_ptr()}


def _kernel_sums(meeting: Meeting, mu: Tensor, sigma: Tensor) -> Tensor:
    call, (_held, kernels) = _Call(meeting), _kernels(mu, sigma)
    sums = call.left.new_empty(len(meeting.batch), len(mu), call.left.shape[1])
    call.run(**kernels, sums=sums.data_ptr())
    return sums


class _KernelSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, batch: PairBatch, mu: Tensor, sigma: Tensor) -> Tensor:
        ctx.save_for_backward(left, right, mu, sigma)
        ctx.batch = batch
        return _kernel_sums(Meeting(left, right, batch), mu, sigma)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        left, right, mu, sigma = ctx.saved_tensors
        batch, up = ctx.batch, gradients[0].contiguous()
        call, (_held, kernels) = _Call(Meeting(left, right, batch)), _kernels(mu, sigma)
        cells = left.new_empty(len(batch), left.shape[1], right.shape[1])
        call.run(**kernels, sums_gradient=up.data_ptr(), cells_gradient=cells.data_ptr())
        of_left = cells @ right[batch.right_rows]
        of_right = cells.transpose(1, 2) @ left[batch.left_rows]
        return (
            torch.zeros_like(left).index_add_(0, batch.left_rows, of_left),
            torch.zeros_like(right).index_add_(0, batch.right_rows, of_right),
            None,
            None,
            None,
        )
