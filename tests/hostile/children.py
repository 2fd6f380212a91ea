"""Commands in processes of their own, which may be killed, and have limits and permissions taken from them."""

from __future__ import annotations

import ctypes
import fcntl
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from tests.hostile.trying import check_said

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.hostile.children", "tests.hostile.preload"])

Limits = dict[int, int]
_FAILED = 70  # an exit code of no command


def _run(arguments: list[str], said: Path, limits: Limits, without_rights: bool) -> None:
    from matchloom.cli import main

    os.dup2(os.open(said, os.O_WRONLY), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, encoding="utf-8") for number in (1, 2))
    for kind, most in limits.items():
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
    if without_rights:
        give_up_rights()
    code = _FAILED
    try:
        code = main(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)  # what is left open is not waited for, as after a kill


def start(
    arguments: Sequence[object], said: Path, *, limits: Limits | None = None, without_rights: bool = False
) -> multiprocessing.process.BaseProcess:
    """Start a command; what it says on standard error is in a file."""
    child = _CONTEXT.Process(target=_run, args=([str(one) for one in arguments], said, limits or {}, without_rights))
    child.start()
    return child


def run(arguments: Sequence[object], *, limits: Limits | None = None, without_rights: bool = False) -> tuple[int, str]:
    """A whole command, whose end must be a good one or one line; its exit code and what it said.

    It says it to a pipe: no limit on files is one on that.
    """
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        os.mkfifo(said)
        reading = os.open(said, os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, 1 << 20)
            child = start(arguments, said, limits=limits, without_rights=without_rights)
            child.join(300)
            if child.exitcode is None:
                child.kill()
                child.join()
                raise AssertionError(f"{arguments} did not end")
            told = os.read(reading, 1 << 20).decode("utf-8", "replace")
        finally:
            os.close(reading)
    if child.exitcode == _FAILED:
        raise AssertionError(f"{' '.join(map(str, arguments))}\n{told[-1500:]}")
    check_said(child.exitcode, told, arguments)
    return child.exitcode, told


def run_and_kill(arguments: Sequence[object], after: float) -> bool:
    """Start a command and kill it so many seconds later; whether it had not ended by itself."""
    child = start(arguments, Path(os.devnull))
    end = time.monotonic() + after
    while time.monotonic() < end and child.exitcode is None:
        time.sleep(min(0.002, max(0.0, end - time.monotonic())))
    child.kill()
    child.join()
    return child.exitcode == -9


def give_up_rights() -> None:
    """A superuser gives up reading and writing what permissions forbid; others never could."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    rights = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    sets[0] &= ~rights
    sets[1] &= ~rights
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset")
