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
from numpy.typing import NDArray
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
        """The gradients of all processes together, and the figures of each; no gradients stand for zeros.

        They are added in the order of processes, as one process adds its shards: the same bits. Two messages: how many
        rows each process has, then all of its numbers.
        """
        rows = [g.values().shape[0] + 1 if g.is_sparse else 0 for g in gradients] or [-1] * len(parameters)
        told = [one.tolist() for one in self._gathered(torch.tensor([*figures, *rows], dtype=torch.float64))]
        counts = np.array([one[len(figures) :] for one in told], dtype=np.int64)  # (processes, parameters)
        sparse = counts.max(0) > 0
        own = gradients or [
            torch.zeros_like(x) for x, rows_only in zip(parameters, sparse, strict=True) if not rows_only
        ]
        dense = [g.reshape(-1) for g in own if not g.is_sparse]
        flat = torch.cat(dense) if dense else torch.zeros(0, dtype=parameters[0].dtype, device=parameters[0].device)
        together = distributed.get_backend() == "nccl"
        if together and dense:
            with _told():
                distributed.all_reduce(flat)
        tables = [x for x, rows_only in zip(parameters, sparse, strict=True) if rows_only]
        lengths = np.maximum(counts[:, sparse] - 1, 0)
        parts = self._parts(tables, [g for g in gradients if g.is_sparse], lengths, flat[:0] if together else flat)
        if not together:
            flat = reduce(torch.add, [one for _, one in parts])
        sums = [reduce(torch.add, [held[n] for held, _ in parts]).coalesce() for n in range(len(tables))]
        at = 0
        found: list[Tensor] = []
        for parameter, rows_only in zip(parameters, sparse, strict=True):
            if rows_only:
                found.append(sums.pop(0))
            else:
                found.append(flat[at : at + parameter.numel()].view_as(parameter))
                at += parameter.numel()
        return found, [one[: len(figures)] for one in told]

    def _parts(
        self, tables: Sequence[Tensor], own: Sequence[Tensor], lengths: NDArray[np.int64], flat: Tensor
    ) -> list[tuple[list[Tensor], Tensor]]:
        """From each process the rows of each table's sparse gradient, and the numbers of its whole ones."""
        numbers = [*(g.indices()[0] for g in own), *(g.values().reshape(-1) for g in own), flat]
        content = torch.cat([x.contiguous().view(torch.uint8) for x in numbers])
        widths = [x[0].numel() for x in tables]
        sizes = 8 * lengths.sum(1) + flat.element_size() * (lengths @ np.array(widths, dtype=np.int64) + len(flat))
        sent = content.new_zeros(int(sizes.max()))
        sent[: len(content)] = content
        found = []
        for one, counts, size in zip(self._gathered(sent), lengths.tolist(), sizes.tolist(), strict=True):
            rows, values = one[: 8 * sum(counts)].view(torch.int64), one[8 * sum(counts) : size].view(flat.dtype)
            whole = values[len(values) - len(flat) :]
            at = torch.split(rows, counts)
            each = [n * w for n, w in zip(counts, widths, strict=True)]
            held = torch.split(values[: len(values) - len(flat)], each)
            made = [
                torch.sparse_coo_tensor(
                    r[None], v.view(-1, *x.shape[1:]), x.shape, is_coalesced=True, check_invariants=False
                )
                for r, v, x in zip(at, held, tables, strict=True)
            ]
            found.append((made, whole))
        return found

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
