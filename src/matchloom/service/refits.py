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
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from matchloom.artifact import is_written
from matchloom.basics.files import atomic_write
from matchloom.search.folder import REFIT_LOCK
from matchloom.service.logs import say
from matchloom.service.metrics import Metrics
from matchloom.service.problems import Refused
from matchloom.service.systems import ServedSystem, Shelf

_RESULT = ".refit.json"
_LOOK = 5.0  # seconds, at most, between two looks at what has changed
_LARGEST = 100_000  # bytes of a result
# Searches come first where cores are few.
_PROGRAM = "import os, sys; os.nice(10); from matchloom.cli import main; sys.exit(main(sys.argv[1:]))"


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


class Refits:
    """Refits the collections of a shelf. `delay` is how many seconds after the last change; None: only when asked."""

    def __init__(self, shelf: Shelf, metrics: Metrics, delay: float | None) -> None:
        self._shelf, self._metrics, self._delay = shelf, metrics, delay
        self._seen: dict[str, tuple[int, float]] = {}  # how much has changed, and since when it is so much
        self._running: dict[str, threading.Thread] = {}
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
        changed, now = system.collection.changed, time.monotonic()
        if changed != self._seen.get(system.name, (-1, 0.0))[0]:
            self._seen[system.name] = (changed, now)
        elif changed and now - self._seen[system.name][1] >= self._delay and self._is_due(system, changed):
            with suppress(Refused):  # another worker's
                self.begin(system)

    def _is_due(self, system: ServedSystem, changed: int) -> bool:
        """Whether what has changed is more than what the last refit, if it was not kept, had learnt from."""
        last = result_of(system.path)
        return last is None or last.kept or last.changed != changed

    def begin(self, system: ServedSystem) -> None:
        """Refit in the background; refused where one goes on."""
        going = self._running.get(system.name)
        if (going is not None and going.is_alive()) or is_written(system.path, REFIT_LOCK):
            raise Refused(409, "conflict", f"{system.name} is being refitted already")
        thread = threading.Thread(target=self._refit, args=(system,), name="matchloom-refit", daemon=True)
        self._running[system.name] = thread
        thread.start()

    def _refit(self, system: ServedSystem) -> None:
        start = time.monotonic()
        command = [sys.executable, "-c", _PROGRAM, "refit", str(system.path.resolve()), "--json"]
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
            why = " ".join(told.decode(errors="replace").split())[-300:]
            say("refit failed", level=logging.WARNING, system=system.name, why=why)
            return
        plain = {**json.loads(out), "finished": datetime.now(UTC).isoformat(timespec="seconds")}
        result = Result(**{name: plain[name] for name in Result.__struct_fields__})
        with suppress(OSError), atomic_write(system.path / _RESULT) as file:
            file.write(msgspec.json.encode(result).decode() + "\n")
        self._metrics.refits.labels("kept" if result.kept else "refused").inc()
        say("refitted", system=system.name, kept=result.kept, seconds=round(time.monotonic() - start, 2))

    def state(self, system: ServedSystem) -> dict[str, Any]:
        """What a client is told: whether a refit goes on, in whichever worker, and what became of the last."""
        assert system.collection is not None
        going = self._running.get(system.name)
        last = result_of(system.path)
        state = "idle"
        if (going is not None and going.is_alive()) or is_written(system.path, REFIT_LOCK):
            state = "running"
        elif self._delay is not None and (changed := system.collection.changed) and self._is_due(system, changed):
            state = "waiting"
        return {"state": state, "last": None if last is None else msgspec.to_builtins(last)}

    def close(self) -> None:
        """End what goes on; a refit that is cut off leaves the collection as it was."""
        self._ended.set()
        for process in list(self._processes):
            process.terminate()
        for thread in list(self._running.values()):
            thread.join(30)


def result_of(folder: Path) -> Result | None:
    """What became of the last refit that a service did in this folder; None where there is none, or no whole one."""
    try:
        with (folder / _RESULT).open("rb") as file:
            return msgspec.json.decode(file.read(_LARGEST), type=Result)
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        return None
