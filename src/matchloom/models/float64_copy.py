"""A model in double precision, by which scores are computed: what is rounded away is the order of its sums.

Single precision has about seven digits, and a sum's last one depends on the shapes of the batch it was computed in: so
would ties, rankings and measures. In double precision the same happens nine digits further down, and a score that is
then rounded is the same number alone, in any batch, on any number of threads.

Double precision takes twice to four times as long. Models that say so (`single_precision`) therefore have their large
products (LSTMs, grids, convolutions) computed in float32 even in the copy, by native kernels in which the order of a
row's sums depends on that row alone; only what is small, such as the last layers, is in double precision there.
"""

from __future__ import annotations

import copy
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from matchloom.kernels.native import library
from matchloom.models.base import PairModel
from matchloom.types import Scores

_FINEST = 2.0**30  # where terms cancel a score may be 0 but for the noise of double precision: to be seen by no tie


class Float64Copy:
    """The float64 copy of a model, made when it is first asked for and again when the model's weights have changed."""

    def __init__(self) -> None:
        self._made: tuple[tuple[object, ...], PairModel] | None = None

    def of(self, model: PairModel) -> PairModel:
        """The model with the same weights in double precision; the model itself where it is so already.

        Also where the device knows no double precision; scores are then as exact as single precision is.
        """
        tensors = list(chain(model.parameters(), model.buffers()))
        single = any(x.dtype == torch.float32 for x in tensors)
        if not single or model.encoder.device.type == "mps":
            return model
        # What writes into a tensor counts its version up.
        state = (model, model.training, *((x.data_ptr(), 0 if x.is_inference() else x._version) for x in tensors))
        made = self._made
        if made is None or made[0] != state:
            with torch.inference_mode(False):
                copied = copy.deepcopy(model, {id(model.encoder): model.encoder.in_double()}).double()
                if model.encoder.device.type == "cpu" and library() is not None:
                    _use_kernels(copied)
            made = self._made = (state, copied)
        return made[1]


def _use_kernels(copied: PairModel) -> None:
    """Tell the layers of models that have such a path; a committee's members are models themselves."""
    for model in copied.modules():
        if isinstance(model, PairModel) and model.single_precision:
            for layer in model.modules():
                setattr(layer, "single", True)  # noqa: B010


def rounded(scores: Tensor) -> Scores:
    """Scores as they are given out: float32, and no finer than a billionth."""
    found = scores.detach().cpu().numpy().astype(np.float64)
    return (np.round(found * _FINEST) / _FINEST).astype(np.float32)
