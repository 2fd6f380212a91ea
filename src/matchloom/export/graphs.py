"""A model as graphs: one that encodes texts, for either side where these differ, and one that matches encodings."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from matchloom.batches import PairBatch
from matchloom.export.inputs import batch_of, fields, pair_fields, texts_of
from matchloom.export.running import Session
from matchloom.models.base import PairModel
from matchloom.types import MatchloomError

OPSET = 17
ENCODE, ENCODE_RIGHT, MATCH = "encode.onnx", "encode_right.onnx", "match.onnx"


class _Encode(nn.Module):
    def __init__(self, model: PairModel, names: list[str], right: bool) -> None:
        super().__init__()
        self.model, self.names, self.right = model, names, right

    def forward(self, *given: Tensor) -> Tensor:
        texts = texts_of(dict(zip(self.names, given, strict=True)))
        return self.model.encode_right(texts) if self.right else self.model.encode(texts)


class _Match(nn.Module):
    def __init__(self, model: PairModel, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *given: Tensor) -> Tensor:
        named = dict(zip(self.names, given, strict=True))
        left, right = named.pop("left"), named.pop("right")
        return self.model.match(left, right, batch_of(named))


def make_graphs(model: PairModel, batch: PairBatch) -> dict[str, bytes]:
    """The files of a model's graphs, by name. `batch` is one that has more pairs than texts, and several of each.

    A model that knows nothing of a text alone has no graph that encodes.
    """
    if model.not_exported:
        raise MatchloomError(f"no ONNX graph can be made of this model: {model.not_exported}", code="not_supported")
    with torch.inference_mode():
        knows = model.encode(batch.left).numel() > 0
    made: dict[str, bytes] = {}
    encoded = {"left": model.encode(batch.left), "right": model.encode_right(batch.right)}
    if knows:
        sides = {"left": (ENCODE, batch.left, False), "right": (ENCODE, batch.right, False)}
        if type(model).encode_right is not PairModel.encode_right:
            sides["right"] = (ENCODE_RIGHT, batch.right, True)
        for side, (name, texts, is_right) in sides.items():
            inputs = fields(texts)
            if name not in made:
                made[name] = _graph(_Encode(model, list(inputs), is_right), inputs, "encoded")
            # What the graph gives may be wider than what the model gives for just these texts.
            given = Session(made[name]).run({key: x.numpy() for key, x in inputs.items()})
            encoded[side] = torch.from_numpy(given)
    inputs = {**encoded, **pair_fields(batch)}
    made[MATCH] = _graph(_Match(model, list(inputs)), inputs, "scores")
    return made


def _graph(module: nn.Module, inputs: Mapping[str, Tensor], output: str) -> bytes:
    """The file of one graph; every size of every input is open, and what is not used is no input."""
    file = io.BytesIO()
    axes = {name: {n: f"{name}_{n}" for n in range(x.dim())} for name, x in inputs.items()}
    with torch.no_grad(), _quiet():
        torch.onnx.export(
            module.eval(),  # or it would be left in training, which it was made in
            tuple(inputs.values()),
            file,  # type: ignore[arg-type]  # documented, and needed in 2.4
            dynamo=False,
            opset_version=OPSET,
            input_names=list(inputs),
            output_names=[output],
            dynamic_axes=axes,
        )
    return file.getvalue()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's warnings of what a trace cannot see: graphs are checked at many sizes."""
    logger: Any = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
