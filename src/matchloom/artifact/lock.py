"""The lock of a folder: one writer at a time, of all processes and threads. It ends with its process, also by kill."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matchloom.basics.files import make_folder, sweep_leftovers
from matchloom.types import MatchloomError

LOCK = ".lock"
_POLL, _SILENT = 0.01, 2.0  # seconds between two tries, and of waiting without a word
_log = logging.getLogger(__name__)
_held: dict[tuple[int, int], int] = {}  # which thread of this process holds a folder, by device and inode


@contextmanager
def writing(folder: Path | str, *, wait: float = 0.0, held: bool = False) -> Iterator[None]:
    """Be the one who writes into a folder, which is made if it is new.

    Temporary files and folders that dead writers left are removed first.

    Args:
        folder: Where.
        wait: Seconds to wait for another writer, also `math.inf`; who still writes then is told of in one line.
        held: Whether this thread may hold it already. A second run must not: it is refused as another's would be.
    """
    folder = Path(folder)
    make_folder(folder)
    key = _key(folder)
    if held and _held.get(key) == threading.get_ident():
        yield
        return
    begun, noted = time.monotonic(), False
    while True:
        with try_lock(folder / LOCK) as ours:
            if ours:
                _held[key] = threading.get_ident()
                try:
                    sweep_leftovers(folder)
                    yield
                finally:
                    del _held[key]
                return
        waited = time.monotonic() - begun
        if waited >= _SILENT and not noted:
            noted = True
            _log.warning("%s is being written by another process or thread; waiting for it", folder)
        if waited >= wait:
            raise MatchloomError(
                f"{folder} is being written by another run; wait until it has ended, or choose another folder",
                code="busy",
            )
        time.sleep(_POLL)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold a lock by the name of a file in a folder that is there; False where another holds it.

    The lock is the system's; the file that bears it is removed at the end.
    """
    while True:
        held = _open(path)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            yield False
            return
        except OSError:
            break  # a file system without locks: better a writer without one than none
        if _is_still(held, path):
            break
        os.close(held)  # another has just ended and removed the file: there is a new one to be had
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)  # while it is held, so that nobody can hold another one
        os.close(held)


def is_written(folder: Path, lock: str = LOCK) -> bool:
    """Whether somebody writes there now; nothing is made, so that also those may ask who may only read."""
    try:
        file = os.open(folder / lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe does not block
    try:
        file = os.open(path, flags, 0o666)
    except OSError as error:
        raise MatchloomError(f"{path.parent} cannot be written: {error.strerror or error}", code="unwritable") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise MatchloomError(
            f"{path} is no file, so that {path.parent} cannot be written; remove it", code="unwritable"
        )
    return file


def _key(folder: Path) -> tuple[int, int]:
    try:
        found = folder.stat()
    except OSError as error:
        raise MatchloomError(f"{folder} cannot be written: {error.strerror or error}", code="unwritable") from None
    return found.st_dev, found.st_ino


def _is_still(held: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(held), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False
