"""All that a run needs to go on after an epoch, saved as one artifact beside its matcher."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from matchloom.artifact import as_saved, holds, packed, read, write
from matchloom.training.config import TrainConfig
from matchloom.types import MatchloomError

FORMAT = 2  # 1 was one file
TENSORS = "checkpoint.safetensors"
MINED_BY = "mined/"
REMEDY = "train anew, without resume=True"


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: dict[str, Any],
    mined_by: Mapping[str, Tensor] | None = None,
) -> None:
    """Write the weights, the optimizer's memory, the run's state, and the weights that mined its negatives."""
    tensors = {f"model/{name}": x for name, x in model.state_dict().items()}
    tensors |= {f"{MINED_BY}{name}": x for name, x in (mined_by or {}).items()}
    for number, memory in optimizer.state_dict()["state"].items():
        for key, value in memory.items():
            tensors[f"optimizer/{number}/{key}"] = torch.as_tensor(value)
    write(folder, "checkpoint", FORMAT, state, {TENSORS: packed(tensors)})


def read_checkpoint(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The state of the run that wrote the checkpoint, and its tensors. One flipped bit is refused."""
    if not holds(folder, "checkpoint"):
        raise MatchloomError(f"{folder} has no checkpoint to resume from; train without resume=True", code="missing")
    found = read(folder, "checkpoint", FORMAT, remedy=REMEDY)
    return found.settings, found.tensors(TENSORS, "pt")


def load_checkpoint(
    folder: Path, tensors: dict[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    """Put the weights and the optimizer's memory back; what does not fit this run is refused in one line."""
    with as_saved(folder, REMEDY):
        model.load_state_dict({k.removeprefix("model/"): x for k, x in tensors.items() if k.startswith("model/")})
        memory: dict[int, dict[str, Tensor]] = {}
        for name, x in tensors.items():
            if name.startswith("optimizer/"):
                _, number, key = name.split("/")
                memory.setdefault(int(number), {})[key] = x
        optimizer.load_state_dict({"state": memory, "param_groups": optimizer.state_dict()["param_groups"]})


def refuse_other_settings(folder: Path, then: dict[str, Any], now: dict[str, Any], config: TrainConfig) -> None:
    """A run goes on with the settings, texts and vectors it began with, or not at all."""
    # A longer run may follow a shorter one, unless its learning rates decay; all else must be as it was.
    free = {"patience": 0} if config.warmup else {"epochs": 0, "patience": 0}
    plain = TrainConfig().as_dict()  # what an older version did not know yet
    then, now = ({**s, "config": {**plain, **s["config"], **free}} for s in (then, now))
    for key in now:
        if then.get(key) != now[key]:
            raise MatchloomError(
                f"cannot resume {folder}: its {_difference(key, then.get(key), now[key])}", code="mismatch"
            )


def _difference(key: str, then: Any, now: Any) -> str:
    if isinstance(then, dict) and isinstance(now, dict):
        for inner in now:
            if then.get(inner) != now[inner]:
                return f"{inner} was {then.get(inner)!r}, now {now[inner]!r}"
    if key == "data":
        return "training data, development data or vectors were others"
    return f"{key} was {then!r}, now {now!r}"
