"""Folders that are written: made, locked while a run writes into them, and swept of what killed runs left behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matchloom.files import TEMPORARY
from matchloom.types import MatchloomError

LOCK = ".lock"


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MatchloomError(f"{folder} cannot be made a folder: {error.strerror or error}") from None


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Be the one run that writes into this folder, which is made if it is new; another one is refused in one line.

    Temporary files of runs that were killed are removed first.
    """
    make_folder(folder)
    with try_lock(folder / LOCK) as ours:
        if not ours:
            raise MatchloomError(
                f"{folder} is being written by another run; wait until it has ended, or choose another folder"
            )
        sweep_leftovers(folder)
        yield


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold a lock by the name of a file in a folder that is there; False where another process holds it.

    The lock is the system's and ends with its process, also by kill -9; the file that bears it is removed at the end.
    """
    while True:
        try:
            held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise MatchloomError(f"{path.parent} cannot be written: {error.strerror or error}") from None
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            yield False
            return
        except OSError:
            break  # a file system without locks: better a run without one than none
        if _is_still(held, path):
            break
        os.close(held)  # another run has just ended and removed the file: there is a new one to be had
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)  # while it is held, so that nobody can hold another one
        os.close(held)


def sweep_leftovers(folder: Path) -> None:
    """Remove temporary files (see `atomic_write`) whose process is no more; nothing else, and nothing of another's."""
    try:
        found = [(entry.path, TEMPORARY.fullmatch(entry.name)) for entry in os.scandir(folder)]
    except OSError:
        return  # what is to be written there will say what is wrong
    for path, name in found:
        if name is not None and not _is_alive(int(name["process"])):
            try:
                Path(path).unlink()
            except OSError:
                continue  # another one was quicker, or it is not ours to remove


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # asks, and sends nothing
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # of another user
    return True


def _is_still(held: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(held), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False
