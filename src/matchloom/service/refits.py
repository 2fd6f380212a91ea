"""Collections are refitted aside: in a process of its own, some time after the last change, by one worker of all.

Searches go on meanwhile: a new fit is switched to by the folder's manifest, whole, and only if it is not worse. The
folder's own lock keeps two refits apart, also those of `matchloom refit`; what became of the last one stands in the
folder, where every worker finds it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matchloom.artifact import is_written
from matchloom.artifact.checks import read_regular
from matchloom.basics.files import atomic_write
from matchloom.search.folder import REFIT_LOCK
from matchloom.service.logs import say
from matchloom.service.metrics import Metrics
from matchloom.service.problems import Refused
from matchloom.service.systems import ServedSystem, Shelf
from matchloom.types import MatchloomError

_RESULT = ".refit.json"
_PATIENCE = 10  # delays after which changes that do not end are learnt all the same
_LOOK = 5.0  # seconds, at most, between two looks at what has changed
_LARGEST = 100_000  # bytes of a result
# Searches come first where cores are few; with nice 5 a fit of four seconds took up to 44 beside 200 clients.
_PROGRAM = "import os, sys; os.nice(1); from matchloom.cli import main; sys.exit(main(sys.argv[1:]))"


class Result(msgspec.Struct, forbid_unknown_fields=True):
    """What became of a refit."""

    entries: int
    questions: int
    changed: int
    before: float | None
    after: float | None
    kept: bool
    why: str
    finished: str
    aside: bool = False  # whether it was kept aside, to be taken up
    feedback: dict[str, Any] | None = None  # what became of judgements
    confused: list[tuple[str, str, int]] = []
    followed: dict[str, Any] | None = None  # what became of a file that is followed
    judged: int = 0  # bytes of judgements that were there


class Order(NamedTuple):
    """What a refit is to do, and for whom."""

    aside: bool = False
    source: Path | None = None
    who: str = "service"


class _Seen(NamedTuple):
    """What has changed in a collection, as one looked."""

    changed: tuple[int, int]  # entries, and bytes of judgements
    since: float  # when it was so much for the first time
    first: float  # when there was anything to learn for the first time


class Refits:
    """Refits the collections of a shelf. `delay` is how many seconds after the last change; None: only when asked.

    Where changes never rest for so long, it is refitted all the same when the first of them is ten times as old.
    """

    def __init__(self, shelf: Shelf, metrics: Metrics, delay: float | None, feedback: Path | None = None) -> None:
        self._shelf, self._metrics, self._delay, self._feedback = shelf, metrics, delay, feedback
        self.when_done: Callable[[ServedSystem, Order, Result], None] = lambda *_: None
        self._seen: dict[str, _Seen] = {}
        self._running: dict[str, threading.Thread] = {}
        self._failed: dict[str, str] = {}  # why the last one of a system did not end
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._ended = threading.Event()

    async def watch(self) -> None:
        """Look at every collection from time to time, and refit those that have changed and come to rest."""
        if self._delay is None:
            return
        while True:
            await asyncio.sleep(min(_LOOK, max(0.05, self._delay / 4)))
            for system in list(self._shelf.systems.values()):
                if system.collection is not None:
                    await asyncio.to_thread(self._look, system)

    def _look(self, system: ServedSystem) -> None:
        assert system.collection is not None
        assert self._delay is not None
        changed, now = (system.collection.changed, self._judged()), time.monotonic()
        seen = self._seen.get(system.name)
        if seen is None or changed[0] < seen.changed[0] or not self._is_due(system):  # or another fit is in use
            seen = _Seen(changed, now, now)
        elif changed != seen.changed:
            seen = seen._replace(changed=changed, since=now)
        endless = now - seen.first >= _PATIENCE * self._delay
        begins = endless or now - seen.since >= self._delay
        self._seen[system.name] = seen._replace(first=now) if endless else seen
        if begins:
            with suppress(Refused):  # another worker's
                self.begin(system)

    def _judged(self) -> int:
        """How many bytes of judgements there are."""
        try:
            return 0 if self._feedback is None else self._feedback.stat().st_size
        except OSError:
            return 0

    def _is_due(self, system: ServedSystem) -> bool:
        """Whether there is more to learn from than the last refit had, whatever became of it."""
        assert system.collection is not None
        last, changed, judged = result_of(system.path), system.collection.changed, self._judged()
        if last is None:
            return changed > 0 or judged > 0
        return (judged > 0 and judged != last.judged) or changed != (0 if last.kept else last.changed)

    def begin(self, system: ServedSystem, order: Order = Order()) -> None:  # noqa: B008 (it does not change)
        """Refit in the background; refused where one goes on."""
        going = self._running.get(system.name)
        if (going is not None and going.is_alive()) or is_written(system.path, REFIT_LOCK):
            raise Refused(409, "conflict", f"{system.name} is being refitted already")
        thread = threading.Thread(target=self._refit, args=(system, order), name="matchloom-refit", daemon=True)
        self._running[system.name] = thread
        thread.start()

    def _refit(self, system: ServedSystem, order: Order) -> None:
        start, judged = time.monotonic(), self._judged()
        command = [sys.executable, "-c", _PROGRAM, "refit", str(system.path.resolve()), "--json"]
        if judged:
            command += ["--feedback", str(self._feedback), "--system", system.name]
        command += ["--aside"] if order.aside else []
        command += [] if order.source is None else ["--from", str(order.source)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self._processes.add(process)
            try:
                out, told = process.communicate()
            finally:
                self._processes.discard(process)
        if self._ended.is_set():
            return
        if process.returncode:
            self._metrics.refits.labels("failed").inc()
            why = " ".join(told.decode(errors="replace").split()).rpartition("matchloom: error: ")[2][-300:]
            say("refit failed", level=logging.WARNING, system=system.name, why=why)
            self._failed[system.name] = why
            self._seen.pop(system.name, None)  # it rests before it is tried again
            return
        self._failed.pop(system.name, None)
        plain = {**json.loads(out), "finished": datetime.now(UTC).isoformat(timespec="seconds"), "judged": judged}
        result = msgspec.convert({name: plain[name] for name in Result.__struct_fields__ if name in plain}, Result)
        _keep_result(system.path, result)
        self._metrics.refits.labels("kept" if result.kept else "refused").inc()
        say("refitted", system=system.name, kept=result.kept, seconds=round(time.monotonic() - start, 2))
        self.when_done(system, order, result)

    def promoted(self, system: ServedSystem) -> None:
        """Note that the fit which waited is in use."""
        last = result_of(system.path)
        if last is not None:
            last.kept, last.aside = True, False
            _keep_result(system.path, last)

    def state(self, system: ServedSystem) -> dict[str, Any]:
        """What a client is told: whether a refit goes on, in whichever worker, and what became of the last."""
        assert system.collection is not None
        going = self._running.get(system.name)
        last = result_of(system.path)
        state = "idle"
        if (going is not None and going.is_alive()) or is_written(system.path, REFIT_LOCK):
            state = "running"
        elif self._delay is not None and self._is_due(system):
            state = "waiting"
        failed = self._failed.get(system.name)
        return {"state": state, "last": None if last is None else msgspec.to_builtins(last), "failed": failed}

    def close(self) -> None:
        """End what goes on; a refit that is cut off leaves the collection as it was."""
        self._ended.set()
        for process in list(self._processes):
            process.terminate()
        for thread in list(self._running.values()):
            thread.join(30)


def _keep_result(folder: Path, result: Result) -> None:
    """Note what became of a refit. Where there is no room for it, what it did stays done."""
    with suppress(MatchloomError), atomic_write(folder / _RESULT) as file:
        file.write(msgspec.json.encode(result).decode() + "\n")


def result_of(folder: Path) -> Result | None:
    """What became of the last refit that a service did in this folder; None where there is none, or no whole one."""
    try:
        return msgspec.json.decode(read_regular(folder / _RESULT, _LARGEST, "remove it"), type=Result)
    except (MatchloomError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return None
