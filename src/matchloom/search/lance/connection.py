"""LanceDB itself: a connection, its coroutines called, its errors told in one line.

Its functions are coroutines that run on a loop in a thread of its own. Every call goes there and back, and the plain
interface makes a dozen of them for one search; here it is three: the candidates, of both sides at the same time, what
their scores need, and the texts that are shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from matchloom.basics.extras import need
from matchloom.types import MatchloomError

_OF_RUST = re.compile(r",? ?[^ ]*\.rs:[0-9:]+")  # where in LanceDB's own sources
# What the system refused says nothing against the archive.
_OF_SYSTEM = {
    "no space left on device": "make room on the disk",
    "disk quota exceeded": "make room in your quota",
    "file too large": "lift the limit on the size of files",
    "permission denied": "check the permissions of its files",
    "read-only file system": "copy it to where it can be written",
    "too many open files": "lift the limit on open files",
    "cannot allocate memory": "free some memory",
}
_PANICS = ("RustPanic", "PanicException")  # Rust's own, by two ways into Python
T = TypeVar("T")


@contextmanager
def told_in_one_line(where: Path) -> Iterator[None]:
    """LanceDB's errors as one line that names the archive and the remedy, which depends on what went wrong."""
    try:
        yield
    except MatchloomError:
        raise
    except (OSError, RuntimeError, ValueError, KeyError, pa.ArrowException) as error:
        raise _one_line(where, error) from None
    except BaseException as error:
        if type(error).__name__ not in _PANICS:
            raise
        raise _one_line(where, error) from None


def _one_line(where: Path, error: BaseException) -> MatchloomError:
    reason = _OF_RUST.sub("", " ".join(str(error).split()))[:200]
    told = f"{reason} {getattr(error, 'strerror', None) or ''}".lower()
    for mark, remedy in _OF_SYSTEM.items():
        if mark in told:
            return MatchloomError(f"{where}: {mark}; nothing that was reported is lost: {remedy} and try again")
    if type(error).__name__ in _PANICS:
        reason = "LanceDB cannot read its files"
    return MatchloomError(f"{where} cannot be used as an archive ({reason}); if files are damaged, {doctor(where)}")


def doctor(where: Path) -> str:
    """Who knows more."""
    return f"'matchloom doctor {where}' says which, or index the pairs again"


def run(call: Coroutine[Any, Any, T]) -> T:
    """What a coroutine of LanceDB returns."""
    from lancedb.background_loop import LOOP

    found: T = LOOP.run(call)  # type: ignore[no-untyped-call]
    return found


def connect(folder: Path) -> Any:
    """A connection; what it keeps in memory of the indices serves all handles that it opens."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # or users read of empty clusters and skipped partitions
    lancedb = need("lancedb", str(folder))  # takes a second, which only archives should cost

    with told_in_one_line(folder):
        return run(lancedb.connect_async(folder))
