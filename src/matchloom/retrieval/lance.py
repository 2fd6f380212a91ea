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

from matchloom.types import MatchloomError

_OF_RUST = re.compile(r",? ?[^ ]*\.rs:[0-9:]+")  # where in LanceDB's own sources
T = TypeVar("T")


@contextmanager
def told_in_one_line(where: Path) -> Iterator[None]:
    """LanceDB's errors as one line that names the archive."""
    try:
        yield
    except MatchloomError:
        raise
    except (OSError, RuntimeError, ValueError, pa.ArrowException) as error:
        reason = _OF_RUST.sub("", " ".join(str(error).split()))[:200]
        raise MatchloomError(
            f"{where} cannot be used as an archive ({reason}); if files are missing or damaged, index the pairs again"
        ) from None


def run(call: Coroutine[Any, Any, T]) -> T:
    """What a coroutine of LanceDB returns."""
    from lancedb.background_loop import LOOP

    found: T = LOOP.run(call)  # type: ignore[no-untyped-call]
    return found


def connect(folder: Path) -> Any:
    """A connection; what it keeps in memory of the indices serves all handles that it opens."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # or users read of empty clusters and skipped partitions
    import lancedb  # takes a second, which only archives should cost

    with told_in_one_line(folder):
        return run(lancedb.connect_async(folder))
