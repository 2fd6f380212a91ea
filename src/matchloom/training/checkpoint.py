"""All that a run needs to go on after an epoch, saved as one artifact beside its matcher."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from matchloom.artifact import as_saved, holds, packed, read, write
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
