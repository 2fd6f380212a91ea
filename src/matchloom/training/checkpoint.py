"""All that a run needs to go on after an epoch, in one file that is replaced whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import nn

from matchloom.files import atomic_write
from matchloom.types import MatchloomError


def save_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Write the weights, the optimizer's memory and the run's state."""
    tensors = {f"model/{name}": x for name, x in model.state_dict().items()}
    for number, memory in optimizer.state_dict()["state"].items():
        for key, value in memory.items():
            tensors[f"optimizer/{number}/{key}"] = torch.as_tensor(value)
    content = {name: x.detach().cpu().contiguous() for name, x in tensors.items()}
    with atomic_write(path, "wb") as file:
        file.write(safetensors.torch.save(content, metadata={"state": json.dumps(state)}))


def read_state(path: Path) -> dict[str, Any]:
    """The state of the run that wrote the checkpoint."""
    try:
        with safetensors.safe_open(path, "pt") as opened:
            state: dict[str, Any] = json.loads((opened.metadata() or {})["state"])
            return state
    except FileNotFoundError:
        raise MatchloomError(f"{path.parent} has no {path.name} to resume from; train without --resume") from None
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise MatchloomError(f"{path} is damaged ({error}); train anew, without --resume") from None


def load_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put the weights and the optimizer's memory back."""
    tensors = safetensors.torch.load_file(path)
    model.load_state_dict({k.removeprefix("model/"): x for k, x in tensors.items() if k.startswith("model/")})
    whole = optimizer.state_dict()
    memory: dict[int, dict[str, torch.Tensor]] = {}
    for name, x in tensors.items():
        if name.startswith("optimizer/"):
            _, number, key = name.split("/")
            memory.setdefault(int(number), {})[key] = x
    optimizer.load_state_dict({"state": memory, "param_groups": whole["param_groups"]})
