"""A user's own class in place of a name of `MODELS`: what it must be to be built, trained, saved and loaded."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from matchloom.batches import PairBatch, Texts
from matchloom.encoders.base import Encoder
from matchloom.models.base import PairModel
from matchloom.types import MatchloomError

PAGE = "see docs/adding-a-model.md"


def own_name(kind: type[PairModel]) -> str:
    """What a saved matcher calls it: its module and its name. Names of `MODELS` have no dot."""
    return f"{kind.__module__}.{kind.__name__}"


def check_class(kind: Any) -> None:
    """Refuse in one line what cannot be a model."""
    if not isinstance(kind, type):
        raise MatchloomError(
            f"model is a {type(kind).__name__}; expected a name of MODELS or a class of your own (the class, not one "
            "that was made of it)",
            code="wrong_type",
        )
    name = kind.__name__
    if not issubclass(kind, PairModel):
        raise MatchloomError(
            f"model {name} is no subclass of matchloom.models.base.PairModel; {PAGE}", code="wrong_type"
        )
    lacking = sorted(getattr(kind, "__abstractmethods__", ()))
    if lacking:
        raise MatchloomError(f"model {name} has no {', no '.join(lacking)}; {PAGE}", code="wrong_type")
    takes = list(inspect.signature(kind).parameters.values())
    if not takes or takes[0].kind not in (takes[0].POSITIONAL_ONLY, takes[0].POSITIONAL_OR_KEYWORD):
        raise MatchloomError(f"model {name} takes no encoder as its first argument; {PAGE}", code="wrong_type")
    for one in takes[1:]:
        if one.kind is not one.KEYWORD_ONLY or not isinstance(one.default, bool | int | float | str):
            raise MatchloomError(
                f"argument {one.name} of {name} must be given by name (after *) and have a number, a string, True or "
                "False as its default",
                code="wrong_type",
            )


def check_built(name: str, model: PairModel) -> PairModel:
    """The model, unless it lacks what everything asks of it."""
    if not isinstance(getattr(model, "encoder", None), Encoder):
        raise MatchloomError(
            f"model {name} keeps no encoder; its constructor must set self.encoder = encoder", code="wrong_type"
        )
    return model


def check_scores(name: str, model: PairModel) -> None:
    """Refuse a model whose scores have another shape than one for each pair: a loss would average it in silence."""
    if model.needs_features or model.needs_lexical:  # the batch would need them
        return
    texts = Texts(torch.tensor([[1, 2], [2, 1]]), torch.tensor([2, 1]))
    rows = torch.tensor([0, 1, 1])
    with torch.inference_mode():
        found = model.eval()(PairBatch(texts, texts, rows, rows))
    if tuple(found.shape) != (3,):
        raise MatchloomError(
            f"match of {name} gives scores of the shape {tuple(found.shape)} for 3 pairs; expected (3,), one each",
            code="wrong_type",
        )


def check_saved(folder: object, saved: str, given: str | None, known: Mapping[str, Any]) -> None:
    """Refuse to load a model of somebody's own without its class, or anything with another class than its own."""
    short = saved.rpartition(".")[2]
    if given is None and "." in saved and saved not in known:
        raise MatchloomError(
            f"{folder} holds a model of somebody's own, {saved}, whose code is not saved; load it in Python with its "
            f"class: Matcher.load(folder, model={short})",
            code="conflict",
        )
    if given is not None and given.rpartition(".")[2] != short:  # a class may move from a notebook to a module
        raise MatchloomError(f"{folder} holds the model {saved}, and model is {given}", code="mismatch")
