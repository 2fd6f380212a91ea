"""`matchloom serve` in a process of its own, which a test may stop or kill."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from matchloom.cli import main
from matchloom.service.server import run as _preloaded  # noqa: F401

# Children of a server that has imported everything but LanceDB, whose threads no fork survives.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.service.child"])


def _serve(arguments: list[str], log: Path) -> None:
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8")
    os.chdir(log.parent)  # files that no option names, such as audit.jsonl, are written where one serves
    os._exit(main(["serve", *arguments]))


class Serving:
    """A serving process; `url` once it is ready."""

    def __init__(self, arguments: Sequence[object], log: Path) -> None:
        self.log = log
        log.unlink(missing_ok=True)
        given = [str(one) for one in arguments]
        self.process = _CONTEXT.Process(target=_serve, args=([*given, "--port", "0"], log), daemon=True)
        self.process.start()
        self.url = self._ready()

    def _ready(self) -> str:
        for _ in range(600):
            for line in self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []:
                if line.startswith("Ready: "):
                    return line.removeprefix("Ready: ").rstrip("/")
            assert self.process.is_alive(), self.log.read_text(encoding="utf-8")
            time.sleep(0.05)
        raise AssertionError("it was not ready in time")

    def lines(self, event: str) -> list[dict[str, Any]]:
        """What it logged of one kind."""
        found = [line for line in self.log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
        return [line for line in map(json.loads, found) if line["event"] == event]

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def end(self, number: signal.Signals) -> int | None:
        """Send a signal and wait for the end."""
        self.send(number)
        self.process.join(60)
        return self.process.exitcode

    def wait_for(self, event: str) -> None:
        """Until it has logged an event."""
        for _ in range(600):
            if self.lines(event):
                return
            time.sleep(0.05)
        raise AssertionError(f"no {event}")


def post(url: str, body: object) -> httpx.Response:
    """One request on a connection of its own."""
    return httpx.post(url, json=body, timeout=30)
