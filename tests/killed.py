"""Work that a test kills in the middle, as kill -9 does."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils.hooks import RemovableHandle

from matchloom import Pair
from matchloom.cli import main
from matchloom.models.base import PairModel
from matchloom.search.collection import Collection
from matchloom.search.lance import manifest
from matchloom.search.lance import table as store
from matchloom.search.lance.collection import LanceCollection

# Children of a server that has imported everything but LanceDB, whose threads no fork survives.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.killed"])


def add_forever(report: Path, archive: Path, first: int) -> None:
    """Add batches of three and replace a fourth pair; each is reported when `add` has returned."""
    patch.object(store, "_MANY", 4).start()  # so that indices are written often too
    index = LanceCollection.open(archive)
    with report.open("a", encoding="utf-8", buffering=1) as file:
        file.write("ready\n")
        for n in range(first, 1_000_000):
            batch = [Pair(f"question number{i} of batch{n}", f"answer {i}", query_id=f"{n}-{i}") for i in range(3)]
            index.add([*batch, Pair("the counter", f"stands at {n}", query_id="counter")])
            file.write(f"{n}\n")


def change_forever(report: Path, folder: Path, first: int, fit: bool) -> None:
    """Add three answers at once, remove the first of the last three, and fit anew now and then; each is reported."""
    collection = Collection.open(folder)
    with report.open("a", encoding="utf-8", buffering=1) as file:
        file.write("ready\n")
        for n in range(first, 1_000_000):
            batch = [Pair(f"question {i} of batch{n}", f"answer {i} of {n}", text_id=f"{n}-{i}") for i in range(3)]
            collection.add(batch)
            file.write(f"add {n}\n")
            collection.remove([f"{n}-0"])
            file.write(f"remove {n}\n")
            if fit and n % 3 == 0:
                file.write(f"refit {collection.refit().kept}\n")


def reencode(report: Path, archive: Path, matcher: Path, batches: int) -> None:
    """Encode an archive again, ten pairs a batch; each is reported, and after so many of them this waits to be killed.

    Attributes are patched and not set: one that is no longer there, so that nothing would be cut off, is an error.
    """
    append, done = store.Store.append, 0

    def append_and_report(self: store.Store, rows: pa.Table) -> None:
        nonlocal done
        append(self, rows)
        done += 1
        file.write(f"{len(rows)}\n")
        while done == batches:
            time.sleep(60)

    index = LanceCollection.open(archive)
    with (
        report.open("a", encoding="utf-8", buffering=1) as file,
        patch.multiple(manifest, BATCH=10, BATCH_OF_POSITIONS=10),
        patch.object(store.Store, "append", append_and_report),
    ):
        file.write("ready\n")
        index.reencode(matcher)


def in_a_step(log: Path, do: Callable[[], None]) -> RemovableHandle:
    """Have `do` done once, in the middle of a step, when the log of a training run holds two epochs."""
    seen = 0

    def hook(module: nn.Module, _: object) -> None:
        nonlocal seen
        if isinstance(module, PairModel) and module.training and log.exists() and log.read_bytes().count(b"\n") >= 2:
            seen += 1
            if seen == 2:
                do()

    return register_module_forward_pre_hook(hook)


def train(report: Path, log: Path, command: list[str]) -> None:
    """A training run by its command that waits in a step of a later epoch to be killed."""

    def wait() -> None:
        with report.open("a", encoding="utf-8") as file:
            file.write("in a step\n")
        time.sleep(3600)

    report.write_text("ready\n", encoding="utf-8")
    in_a_step(log, wait)
    sys.exit(main(command))


def run_and_kill(
    work: Callable[..., None], report: Path, *arguments: object, after: float, lines: int = 0
) -> list[str]:
    """Start work in another process, kill it so long after it reported so many lines; the whole lines it wrote."""
    report.unlink(missing_ok=True)
    child = _CONTEXT.Process(target=work, args=(report, *arguments))
    child.start()
    while not report.exists() or report.read_text(encoding="utf-8").count("\n") <= lines:  # the first says "ready"
        assert child.exitcode is None, "it ended before it was ready"
        time.sleep(0.005)
    time.sleep(after)
    child.kill()
    child.join()
    return [line for line in report.read_text(encoding="utf-8").splitlines(keepends=True)[1:] if line.endswith("\n")]
