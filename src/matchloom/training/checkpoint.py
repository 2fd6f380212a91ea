"""All that a run needs to go on after an epoch, in one sealed file that is replaced whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from matchloom.basics.files import is_there
from matchloom.sealed import read_sealed, write_sealed
from matchloom.types import MatchloomError

FORMAT = 1


def save_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Write the weights, the optimizer's memory and the run's state."""
    tensors = {f"model/{name}": x for name, x in model.state_dict().items()}
    for number, memory in optimizer.state_dict()["state"].items():
        for key, value in memory.items():
            tensors[f"optimizer/{number}/{key}"] = torch.as_tensor(value)
    write_sealed(path, "checkpoint", FORMAT, state, tensors)


def read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The state of the run that wrote the checkpoint, and its tensors. One flipped bit is refused."""
    if not is_there(path):
        raise MatchloomError(f"{path.parent} has no {path.name} to resume from; train without --resume", code="missing")
    found = read_sealed(path, "checkpoint", FORMAT, remedy="train anew, without --resume", framework="pt")
    return found.settings, found.tensors


def load_checkpoint(tensors: dict[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put the weights and the optimizer's memory back."""
    model.load_state_dict({k.removeprefix("model/"): x for k, x in tensors.items() if k.startswith("model/")})
    memory: dict[int, dict[str, Tensor]] = {}
    for name, x in tensors.items():
        if name.startswith("optimizer/"):
            _, number, key = name.split("/")
            memory.setdefault(int(number), {})[key] = x
    optimizer.load_state_dict({"state": memory, "param_groups": optimizer.state_dict()["param_groups"]})
