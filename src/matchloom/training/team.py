"""Several processes that train one matcher, started by torchrun: gloo between CPUs, nccl between GPUs.

Every process reads the pairs, builds the same model and draws the same batches; it works on its part of each batch's
shards, and gradients are summed over all. So N processes take the steps of one, and each holds the same weights. The
first process alone writes and prints. Word vectors have sparse gradients, of which only the rows travel.
"""

from __future__ import annotations

import json
import math
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
from matchloom.training.exchange import Exchange
from matchloom.types import MatchloomError, Scores

T = TypeVar("T")
_WAIT = timedelta(hours=6)  # for a process that makes the tokens of many shards
_MESSAGE = 4096  # bytes of an error that the others are told
_WHOLE, _NOTHING = -1, -2  # in place of a number of rows: the whole gradient, and none


class Team(NamedTuple):
    """This process's number among how many; and whether torchrun started them again after one was lost."""

    rank: int = 0
    size: int = 1
    restarted: bool = False
    exchange: Exchange | None = None  # where all are on one machine

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
        """The gradients of all processes together, and the figures of each; a process with no shards has no gradients.

        They are added in the order of processes, as one process adds its shards: the same bits.
        """
        together = distributed.get_backend() == "nccl"
        rows = [len(g.values()) if g.is_sparse else _WHOLE for g in gradients] or [_NOTHING] * len(parameters)
        sent = [
            torch.tensor([*figures, *rows], dtype=torch.float64, device=parameters[0].device),
            *(g.indices()[0] for g in gradients if g.is_sparse),
            *(g.values() if g.is_sparse else g for g in gradients if g.is_sparse or not together),
        ]
        contents = self._exchanged(torch.cat([x.contiguous().view(-1).view(torch.uint8) for x in sent]))
        heads = [one[: 8 * (len(figures) + len(rows))].view(torch.float64).tolist() for one in contents]
        found = [
            _parsed(one[8 * len(head) :], parameters, [int(n) for n in head[len(figures) :]], whole=not together)
            for one, head in zip(contents, heads, strict=True)
            if head[-1] != _NOTHING
        ]
        sums = [reduce(torch.add, column) for column in zip(*found, strict=True)]
        if together:
            self._add_on_gpus(sums, parameters, gradients)
        return [x.coalesce() if x.is_sparse else x for x in sums], [head[: len(figures)] for head in heads]

    @staticmethod
    def _add_on_gpus(sums: list[Tensor], parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        """Put the sums of all whole gradients in their places, by one call of nccl."""
        places = [n for n, x in enumerate(sums) if not x.is_sparse]
        if places:
            own = [gradients[n] if gradients else torch.zeros_like(parameters[n]) for n in places]
            flat = torch.cat([x.reshape(-1) for x in own])
            with _told():
                distributed.all_reduce(flat)
            for n, part in zip(places, torch.split(flat, [x.numel() for x in own]), strict=True):
                sums[n] = part.view_as(parameters[n])

    def _exchanged(self, content: Tensor) -> list[Tensor]:
        """The bytes of each process, of any length."""
        if self.exchange is not None:
            with _told():
                return [torch.from_numpy(one) for one in self.exchange.gather(content.numpy())]
        sizes = [int(one) for one in self._gathered(torch.tensor([len(content)]))]
        padded = content.new_zeros(max(sizes))
        padded[: len(content)] = content
        return [one[:size] for one, size in zip(self._gathered(padded), sizes, strict=True)]

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
        team = Team(distributed.get_rank(), distributed.get_world_size(), restarted)
        shares = team.size > 1 and distributed.get_backend() == "gloo"
        yield team._replace(exchange=Exchange.open(team.rank, team._gathered) if shares else None)
    finally:
        if begun:
            distributed.destroy_process_group()


def _parsed(content: Tensor, parameters: Sequence[Tensor], rows: Sequence[int], *, whole: bool) -> list[Tensor]:
    """The gradients in what a process sent: the numbers of their rows, then their values in turn.

    A place is held for whole ones where they were not sent.
    """
    counts = [n for n in rows if n >= 0]
    indices = iter(torch.split(content[: 8 * sum(counts)].view(torch.int64), counts))
    values = content[8 * sum(counts) :].view(parameters[0].dtype)
    found, at = [], 0
    for n, x in zip(rows, parameters, strict=True):
        shape = (n, *x.shape[1:]) if n >= 0 else x.shape if whole else (0,)
        own = values[at : at + math.prod(shape)].view(shape)
        at += math.prod(shape)
        if n >= 0:
            ids = next(indices)[None]
            own = torch.sparse_coo_tensor(ids, own, x.shape, is_coalesced=True, check_invariants=False)
        found.append(own)
    return found


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
