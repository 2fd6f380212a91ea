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
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from matchloom.basics.extras import need
from matchloom.basics.memory import few_heaps
from matchloom.basics.stores import shown
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
# What a process keeps in memory of the indices and files of an archive, however large that is; LanceDB's own are 6 GB
# and 1 GB.
INDEX_CACHE, METADATA_CACHE = 2**30, 2**28
_PANICS = ("RustPanic", "PanicException")  # Rust's own, by two ways into Python
T = TypeVar("T")


@contextmanager
def told_in_one_line(where: Path | str) -> Iterator[None]:
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


def _one_line(where: Path | str, error: BaseException) -> MatchloomError:
    if isinstance(where, str):
        return _of_store(where, " ".join(str(error).split()))
    reason = _OF_RUST.sub("", " ".join(str(error).split()))[:200]
    told = f"{reason} {getattr(error, 'strerror', None) or ''}".lower()
    for mark, remedy in _OF_SYSTEM.items():
        if mark in told:
            return MatchloomError(f"{where}: {mark}; nothing that was reported is lost: {remedy} and try again")
    if type(error).__name__ in _PANICS:
        reason = "LanceDB cannot read its files"
    return MatchloomError(f"{where} cannot be used as an archive ({reason}); if files are damaged, {doctor(where)}")


def _of_store(where: str, told: str) -> MatchloomError:
    """What an object store said, without what only its client's authors can read."""
    status = re.search(r"(?:status code|status)[:=]? ([45][0-9]{2})", told)
    code = re.search(r"<Code>([A-Za-z]{1,60})</Code>", told)
    if status is not None or code is not None:
        said = " ".join(found[1] for found in (status, code) if found is not None)
        reason = f"the store answered {said}"
    elif any(mark in told for mark in ("error sending request", "connection", "timed out", "HTTP error")):
        reason = "the connection to the store was lost or is too slow"
    else:
        return MatchloomError(
            f"{where} cannot be used as an archive ({_OF_RUST.sub('', told)[:200]}); {doctor(where)}", code="failed"
        )
    return MatchloomError(
        f"{where}: {reason}; what was reported before is kept, and nothing is half-written: try again", code="failed"
    )


def doctor(where: Path | str) -> str:
    """Who knows more."""
    return f"'matchloom doctor {where}' says which, or index the pairs again"


def run(call: Coroutine[Any, Any, T]) -> T:
    """What a coroutine of LanceDB returns."""
    from lancedb.background_loop import LOOP

    found: T = LOOP.run(call)  # type: ignore[no-untyped-call]
    return found


def connect(folder: Path | str, options: dict[str, str] | None = None) -> Any:
    """A connection; what it keeps in memory of the indices serves all handles that it opens."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # or users read of empty clusters and skipped partitions
    few_heaps()  # its threads take turns with what they read
    lancedb = need("lancedb", str(folder))  # takes a second, which only archives should cost

    with told_in_one_line(folder):
        session = lancedb.Session(index_cache_size_bytes=INDEX_CACHE, metadata_cache_size_bytes=METADATA_CACHE)
        return run(lancedb.connect_async(folder, storage_options=options, session=session))


def storage_options(uri: str) -> dict[str, str]:
    """What LanceDB calls what pyarrow reads from a URI; all that it does not say comes from the environment."""
    found = urlsplit(uri)
    given = {name: values[-1] for name, values in parse_qs(found.query).items()}
    unknown = sorted(given.keys() - {"region", "scheme", "endpoint_override"})
    if unknown:
        raise MatchloomError(
            f"{shown(uri)}: the option {unknown[0]!r} of the URI is unknown to a LanceDB archive; expected region, "
            "scheme or endpoint_override",
            code="bad_value",
        )
    # A store that is busy for longer than this is told of, not waited for.
    options = {"client_max_retries": "4", "client_retry_timeout": "20", "timeout": "60s", "connect_timeout": "10s"}
    if found.username:
        options["aws_access_key_id"] = unquote(found.username)
        options["aws_secret_access_key"] = unquote(found.password or "")
    if "region" in given:
        options["aws_region"] = given["region"]
    if "endpoint_override" in given:
        options["aws_endpoint"] = f"{given.get('scheme', 'https')}://{given['endpoint_override']}"
        options["allow_http"] = str(given.get("scheme") == "http").lower()
    return options
