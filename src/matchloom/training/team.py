"""Several processes that train one matcher, started by torchrun: gloo between CPUs, nccl between GPUs.

Every process reads the pairs, builds the same model and draws the same batches; it works on its part of each batch's
shards, and gradients are summed over all. So N processes take the steps of one, and each holds the same weights. The
first process alone writes and prints. Word vectors have sparse gradients, of which only the rows travel.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from matchloom.artifact import holds
from matchloom.types import MatchloomError, Scores

T = TypeVar("T")
_WAIT = timedelta(hours=6)  # for a process that makes the tokens of many shards
_MESSAGE = 4096  # bytes of an error that the others are told


class Team(NamedTuple):
    """This process's number among how many; and whether torchrun started them again after one was lost."""

    rank: int = 0
    size: int = 1
    restarted: bool = False

    def begin(self, folder: Path | None, resume: bool, overwrite: bool) -> tuple[bool, bool]:
        """Whether to resume and to overwrite: who was started again goes on, or begins again where nothing is there."""
        if not self.restarted or folder is None:
            return resume, overwrite
        there = holds(folder, "checkpoint")
        return there, not there

    def agree(self, make: Callable[[], T]) -> T:
        """What `make` makes in each process; what one of them refuses is refused by all, in the same line."""
        if self.size == 1:
            return make()
        found, told = None, ""
        try:
            found = make()
        except MatchloomError as error:
            told = json.dumps([error.code, str(error)])
        content = told.encode()[:_MESSAGE]
        mine = torch.zeros(_MESSAGE, dtype=torch.uint8)
        mine[: len(content)] = torch.tensor(list(content), dtype=torch.uint8)
        for rank, one in enumerate(self._gathered(mine)):
            line = bytes(one.tolist()).rstrip(b"\0").decode("utf-8", "replace")
            if line:
                code, message = json.loads(line)
                raise MatchloomError(message if rank == 0 else f"process {rank}: {message}", code=code)
        return found  # type: ignore[return-value]

    def share(self, model: nn.Module) -> None:
        """Give all processes the weights of the first."""
        if self.size > 1:
            with _told():
                for x in model.state_dict().values():
                    distributed.broadcast(x, 0)

    def part(self, count: int) -> slice:
        """Which of so many things that follow each other are this process's."""
        ends = [count * n // self.size for n in range(self.size + 1)]
        return slice(ends[self.rank], ends[self.rank + 1])

    def joined_scores(self, scores: Scores, count: int) -> Scores:
        """The scores of all parts, from each process those of its own."""
        if self.size == 1:
            return scores
        longest = -(-count // self.size)
        padded = torch.zeros(longest)
        padded[: len(scores)] = torch.from_numpy(scores)
        parts = [self._replace(rank=rank).part(count) for rank in range(self.size)]
        found = zip(self._gathered(padded), parts, strict=True)
        return np.concatenate([one[: own.stop - own.start].numpy() for one, own in found])

    def summed(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], figures: Sequence[float]
    ) -> tuple[list[Tensor], list[list[float]]]:
        """The gradients of all processes together, and the figures of each; no gradients stand for zeros."""
        rows = [g.values().shape[0] + 1 if g.is_sparse else 0 for g in gradients] or [-1] * len(parameters)
        told = [one.tolist() for one in self._gathered(torch.tensor([*figures, *rows], dtype=torch.float64))]
        counts = np.array([one[len(figures) :] for one in told], dtype=np.int64)  # (processes, parameters)
        sparse = counts.max(0) > 0
        found: list[Tensor] = []
        dense = [
            gradients[n].reshape(-1) if gradients else torch.zeros_like(parameter).reshape(-1)
            for n, parameter in enumerate(parameters)
            if not sparse[n]
        ]
        flat = torch.cat(dense) if dense else torch.zeros(0)
        if dense and distributed.get_backend() == "nccl":
            with _told():
                distributed.all_reduce(flat)
        elif dense:  # in the order of processes, as one process adds its shards: the same bits
            flat = reduce(torch.add, self._gathered(flat))
        at = 0
        for n, parameter in enumerate(parameters):
            if sparse[n]:
                own = gradients[n] if gradients else None
                found.append(self._rows(parameter, own, np.maximum(counts[:, n] - 1, 0).tolist()))
            else:
                found.append(flat[at : at + parameter.numel()].view_as(parameter))
                at += parameter.numel()
        return found, [one[: len(figures)] for one in told]

    def _rows(self, parameter: Tensor, own: Tensor | None, counts: list[int]) -> Tensor:
        """The sum of sparse gradients: each process tells its rows, and they are added in the order of processes."""
        most, width = max(counts), parameter.shape[1:]
        rows = torch.zeros(most, dtype=torch.int64, device=parameter.device)
        values = torch.zeros((most, *width), dtype=parameter.dtype, device=parameter.device)
        if own is not None:
            rows[: counts[self.rank]] = own.indices()[0]
            values[: counts[self.rank]] = own.values()
        told = zip(self._gathered(rows), self._gathered(values), counts, strict=True)
        parts = [
            torch.sparse_coo_tensor(
                one[None, :count], other[:count], parameter.shape, is_coalesced=True, check_invariants=False
            )
            for one, other, count in told
            if count
        ]
        if not parts:
            return torch.sparse_coo_tensor(rows[None], values, parameter.shape, check_invariants=False).coalesce()
        return reduce(torch.add, parts).coalesce()  # as one process adds its shards

    def _gathered(self, x: Tensor) -> list[Tensor]:
        on_gpu = distributed.get_backend() == "nccl"
        sent = x.cuda() if on_gpu else x
        found = [torch.empty_like(sent) for _ in range(self.size)]
        with _told():
            distributed.all_gather(found, sent)
        return [one.to(x.device) for one in found]


def is_first() -> bool:
    """Whether this process is the one that prints: the only one, or the first that torchrun started."""
    return "MASTER_ADDR" not in os.environ or os.environ.get("RANK", "0") == "0"


def own_device(device: str) -> str:
    """Of several GPUs the one of this process."""
    return f"cuda:{os.environ['LOCAL_RANK']}" if device == "cuda" and "LOCAL_RANK" in os.environ else device


@contextmanager
def joined(device: str) -> Iterator[Team]:
    """The processes that torchrun started with this one; alone where it did not start it."""
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys():
        yield Team()
        return
    restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    begun = not distributed.is_initialized()
    if begun:
        with _told():
            store, rank, size = next(iter(rendezvous("env://", timeout=_WAIT)))
            # torchrun keeps its store when it starts workers again: what the lost ones wrote there must not be found.
            fresh = PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)
            backend = "nccl" if device.startswith("cuda") else "gloo"
            distributed.init_process_group(backend, store=fresh, rank=rank, world_size=size, timeout=_WAIT)
    try:
        yield Team(distributed.get_rank(), distributed.get_world_size(), restarted)
    finally:
        if begun:
            distributed.destroy_process_group()


@contextmanager
def _told() -> Iterator[Any]:
    """What torch says of a lost process, in one line."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).partition("\n")[0][:200]
        raise MatchloomError(
            f"another process of this run was lost ({reason}); what was saved goes on with resume=True", code="failed"
        ) from None
