"""A write that is sent twice is done once: what a request's `Idempotency-Key` stood for is kept in a file.

    {"key": ..., "asked": ..., "state": "begun", "place": {"file": "changes-1", "start": 120, ...}, "told": {...}}
    {"key": ..., "asked": ..., "state": "done", "told": {"put": 1, "ids": ["invoices"]}}

Before a change is written, a line says which bytes will stand where; after it another says what was answered. A process
that is killed between the two leaves the first alone: whether the change was made is then seen by those bytes. Keys and
requests are kept as digests. The file lies beside what is written, so that all workers and the next start have it; a
full one is moved aside, and the one before that is forgotten.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from fastapi import Depends, Header, Request

from matchloom.artifact.lock import try_lock
from matchloom.basics.growing import Announce, GrowingFile, open_regular
from matchloom.service.keys import LOCAL
from matchloom.service.logs import say
from matchloom.service.problems import Refused
from matchloom.types import MatchloomError

NAME = ".once.jsonl"  # in the folder of a collection or an archive
HEADER = "Idempotency-Key"
_MOST, _KEEP = 2**22, 1  # bytes of a file, full files beside it
_LARGEST = 2**26  # bytes of one change
_POLL = 0.005
_UNSURE = f"the service ended during this request: check whether it was done; if not, send it with another {HEADER}"
Plain = dict[str, Any]


class Attempt(NamedTuple):
    """A write that may be sent again, by digests: of the key and who has it, and of all that is asked."""

    key: str
    asked: str


class Place(msgspec.Struct):
    """Which bytes a change has, and where: a file beside this one."""

    file: str
    inode: int
    start: int
    size: int
    digest: str


class _Line(msgspec.Struct, omit_defaults=True):
    key: str
    asked: str
    state: Literal["begun", "done", "void"]
    time: float = 0.0
    place: Place | None = None
    told: Plain = {}


async def _attempt(
    request: Request,
    key: Annotated[
        str | None,
        Header(
            alias=HEADER,
            min_length=1,
            max_length=255,
            pattern=r"^[!-~]+$",
            description="Any text, new for each write: a write that is sent again with the same key is done once.",
        ),
    ] = None,
) -> Attempt | None:
    if key is None:
        return None
    who = request.scope["state"].get("holder", LOCAL).name
    path = request.url.path + "?" + request.url.query
    return Attempt(_digest(who, key), _digest(request.method, path, await request.body()))


Repeatable = Annotated[Attempt | None, Depends(_attempt)]


class Once:
    """The writes of one place that had a key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = GrowingFile(path, "kept key", most=_MOST, keep=_KEEP)
        self._forget()

    def _forget(self) -> None:
        self._end = self._inode = 0
        self._known: dict[str, _Line] = {}

    def do(
        self,
        attempt: Attempt,
        work: Callable[[Announce], Plain],
        recovered: Callable[[Plain], Plain] | None = None,
        *,
        wait: float = 5.0,
    ) -> Plain:
        """What the work answers; where it was done before, what it answered then.

        Args:
            attempt: Which write it is.
            work: Does it. It calls what it is given before it writes; where it fails, nothing was written.
            recovered: The answer of a write that was done by a process which was killed before it could tell, from
                what was announced. Without it such a write is refused: it may have been done.
            wait: Seconds to wait for another write with a key.
        """
        with self._held(wait):
            self._follow()
            known = self._known.get(attempt.key)
            if known is not None and known.asked != attempt.asked:
                raise Refused(422, "key_reused", f"this {HEADER} was sent with another request; send a new one")
            if known is not None and known.state == "done":
                return known.told
            if known is not None and known.state == "begun":
                there = self._is_there(known.place)
                if there is None or (there and recovered is None):
                    raise Refused(409, "unsure", _UNSURE)
                if there and recovered is not None:
                    told = recovered(known.told)
                    self._try_to_keep(_Line(*attempt, "done", round(time.time(), 3), told=told))
                    return told
            return self._do(attempt, work)

    def _do(self, attempt: Attempt, work: Callable[[Announce], Plain]) -> Plain:
        announced = False

        def announce(path: Path | None, start: int, content: bytes, told: Mapping[str, Any]) -> None:
            nonlocal announced
            place = None if path is None else _place(path, start, content)
            self._keep(_Line(*attempt, "begun", round(time.time(), 3), place, dict(told)))
            announced = True

        try:
            told = work(announce)
        except BaseException:
            if announced:
                self._try_to_keep(_Line(*attempt, "void", round(time.time(), 3)))
            raise
        self._try_to_keep(_Line(*attempt, "done", round(time.time(), 3), told=told))
        return told

    def _is_there(self, place: Place | None) -> bool | None:
        """Whether what was announced was written; None where the file is another by now, and cannot tell."""
        if place is None or Path(place.file).name != place.file or not 0 <= place.size <= _LARGEST:
            return None
        try:
            file = open_regular(self.path.with_name(place.file), os.O_RDONLY, "change")
        except MatchloomError:
            return None
        try:
            if os.fstat(file).st_ino != place.inode:
                return None
            return _digest(os.pread(file, place.size, place.start)) == place.digest
        except (OSError, OverflowError):
            return None
        finally:
            os.close(file)

    def _keep(self, line: _Line, *, durable: bool = True) -> None:
        self._file.append(msgspec.to_builtins(line), durable=durable)
        self._known[line.key] = line

    def _try_to_keep(self, line: _Line) -> None:
        """Keep how it ended; where that cannot be written, what was announced tells it next time."""
        try:
            self._keep(line, durable=False)
        except MatchloomError as error:
            say("key not kept", level=logging.WARNING, why=str(error))

    def _follow(self) -> None:
        """Read what was kept since, by whomever; a file that was moved aside, and the new one."""
        try:
            found = self.path.stat()
        except OSError:
            self._forget()
            return
        if found.st_ino != self._inode or found.st_size < self._end:
            self._forget()
            self._inode = found.st_ino
            for path in self._file.aside:
                with suppress(MatchloomError):
                    self._take(GrowingFile(path, "kept key", most=_MOST), 0)
        self._end = self._take(self._file, self._end)

    def _take(self, file: GrowingFile, end: int) -> int:
        for line in file.lines(end):
            end = line.start + len(line.content)
            with suppress(ValueError, RecursionError):  # somebody's hand
                read = msgspec.json.decode(line.content, type=_Line)
                self._known[read.key] = read
        return end

    @contextmanager
    def _held(self, wait: float) -> Iterator[None]:
        """Be the only one who writes with a key here: in this thread, of all processes."""
        end = time.monotonic() + wait
        while True:
            with try_lock(self.path.with_name(self.path.name + ".lock")) as ours:
                if ours:
                    yield
                    return
            if time.monotonic() >= end:
                raise MatchloomError(f"{self.path} is being written by another process; try again", code="busy")
            time.sleep(_POLL)


class Onces:
    """One for each place, made when it is asked for."""

    def __init__(self) -> None:
        self._all: dict[Path, Once] = {}
        self._lock = threading.Lock()

    def of(self, path: Path) -> Once:
        """The one of a file."""
        with self._lock:
            return self._all.setdefault(path, Once(path))

    def beside(self, path: Path) -> Once:
        """The one of writes to a file that only grows."""
        return self.of(path.with_name(path.name + ".once"))


def _place(path: Path, start: int, content: bytes) -> Place:
    return Place(path.name, path.stat().st_ino, start, len(content), _digest(content))


def _digest(*parts: str | bytes) -> str:
    made = hashlib.sha256()
    for part in parts:
        plain = part.encode() if isinstance(part, str) else part
        made.update(len(plain).to_bytes(8, "big") + plain)
    return made.hexdigest()[:32]
