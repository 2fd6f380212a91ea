"""Several processes that serve the same socket: uvicorn's supervisor starts them, and another for one that dies.

Each reads the folders itself; what is mapped is in memory once. What one of them writes, the others find by the
journal. Limits and figures are those of each worker.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.queues import SimpleQueue
from typing import Any, NamedTuple

from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from matchloom.basics.memory import keep_memory
from matchloom.service.app import create_app
from matchloom.service.logs import log_to_stderr
from matchloom.service.pauses import keep_short
from matchloom.service.server import config_of, reload_on_hup
from matchloom.service.service import Service
from matchloom.service.sharing import Counted, Counts, SharedSocket
from matchloom.types import MatchloomError


class Served(NamedTuple):
    """What a worker needs to make its app: the arguments of `create_app`."""

    folders: list[Any]
    options: dict[str, Any]
    quiet: bool


def worker_app(served: Served, told: SimpleQueue[str]) -> FastAPI:
    """The app of one worker, made in its process; it tells nothing when it is ready, or why it cannot start."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until everything is loaded there is nothing to read anew
    keep_memory()
    keep_short()
    log_to_stderr(quiet=served.quiet)
    app = create_app(served.folders, **served.options)
    service: Service = app.state.service

    def ready() -> None:
        reload_on_hup(service)
        gc.freeze()
        told.put("")

    def fail() -> None:
        told.put(" ".join(str(service.failure).split()))
        sys.stderr.flush()
        os._exit(STARTUP_FAILURE)  # nothing was served yet, and the supervisor need not try again

    service.when_ready, service.when_failed = ready, fail
    service.when_reloaded = lambda: os.kill(os.getppid(), signal.SIGHUP)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return app


def _end_with_parent() -> None:
    """A worker whose supervisor was killed finishes what it has, and ends."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


class Supervisor(Multiprocess):
    """uvicorn's, but SIGHUP is for the workers: each reads everything anew and drops no request."""

    def handle_hup(self) -> None:
        """Pass it on."""
        for process in self.processes:
            if process.pid is not None and process.exitcode is None:
                os.kill(process.pid, signal.SIGHUP)


def run_workers(served: Served, listening: socket.socket, count: int, *, when_ready: Callable[[], None]) -> None:
    """Serve with so many processes until SIGTERM or Ctrl-C.

    Args:
        served: What to serve.
        listening: What `bind` made.
        count: How many workers.
        when_ready: Called when all have loaded everything.
    """
    spawn = get_context("spawn")  # as uvicorn starts them
    told: SimpleQueue[str] = spawn.SimpleQueue()
    shared = SharedSocket(listening.family, listening.type, listening.proto, fileno=listening.detach())
    shared.counts = Counts(spawn.Array("i", 2 * count), spawn.Array("i", 2 * count, lock=False))
    config = config_of(partial(worker_app, served, told), http=Counted, factory=True, workers=count)
    supervisor = Supervisor(config, [shared])
    failures: list[str] = []

    def listen() -> None:
        for _ in range(count):
            why = told.get()
            if why:
                failures.append(why)
                supervisor.should_exit.set()
                return
        when_ready()

    threading.Thread(target=listen, daemon=True).start()
    supervisor.run()
    if failures:
        raise MatchloomError(failures[0], code="failed")
