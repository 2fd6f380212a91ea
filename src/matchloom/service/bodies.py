"""Bodies: taken in within their size, time and room, and looked at before anything is made of them.

A body of two megabytes can hold a million values. So its lists are counted first, by its brackets and commas alone: a
list, an object, a depth or a number that no request has is refused before a single item is made. What is large is
read in a thread of its own, so that the loop is free for others.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope

from matchloom.service.limits import Limits
from matchloom.service.problems import Refused, overloaded
from matchloom.service.room import CLIENT, SMALL, Held, Room

_KEYS = 256  # of one object
_DEPTH = 32
_VALUES = 100_000  # of one body
_DIGITS = 400  # of one number; a double has 309 before its point
_READ = "read"  # in a scope's state: what the body says
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
# Texts and numbers are one piece each, however long: a text is over at the first quote that is not escaped.
_PIECE = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}:,]|[-+.0-9eE]{%d}' % _DIGITS, re.DOTALL)


class Read(NamedTuple):
    """What a body says, or why it cannot be read."""

    value: Any
    error: Exception | None = None


class Bodies:
    """Takes in the bodies of all requests."""

    def __init__(self, limits: Limits, room: Room) -> None:
        self._limits, self._room = limits, room
        self._reader = ThreadPoolExecutor(1, "matchloom-body")

    @contextmanager
    def held(self) -> Iterator[Held]:
        """What a request may hold until it is answered."""
        held = Held(self._room, CLIENT.get())
        try:
            yield held
        finally:
            held.leave()

    async def take(self, held: Held, receive: Receive, headers: Mapping[bytes, bytes]) -> bytes:
        """The whole body, unless it is too large or too slow, or there is no room for it."""
        limits = self._limits
        too_large = Refused(413, "too_large", f"a request may have {limits.body:,} bytes")
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > limits.body):
            raise too_large
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(limits.upload) as held.arriving:
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ConnectionError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > limits.body:
                        raise too_large
                    if not held.grow(len(parts[-1])):
                        raise overloaded("too many large requests arrive")
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            if held.gave_way:
                raise overloaded("too many large requests arrive, and this one did not end") from None
            raise Refused(408, "too_slow", f"the request did not arrive within {limits.upload:g} seconds") from None
        finally:
            held.arriving = None
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if size and kind != b"application/json":  # also what a form of another site could send unasked
            raise Refused(415, "not_json", "expected JSON, with 'Content-Type: application/json'")
        return b"".join(parts)

    async def read(self, scope: Scope, body: bytes) -> None:
        """Look at a body and keep what it says for the route; a large one is read aside."""
        if len(body) <= SMALL:
            found = read_body(body, self._limits.texts)
        else:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._reader, read_body, body, self._limits.texts)
        scope["state"][_READ] = found

    def close(self) -> None:
        """No more bodies come."""
        self._reader.shutdown(wait=False, cancel_futures=True)


def read_body(body: bytes, longest: int) -> Read:
    """What a body says; refused where its shape is no request's. What is no JSON is told by the route."""
    try:
        body.decode()
    except UnicodeDecodeError:
        raise Refused(400, "not_json", "the body is not UTF-8") from None
    check_shape(body, longest)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        return Read(None, error)
    try:
        if _HALF.search(body):  # most of these are halves of whole characters
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refused(422, "invalid", "a text holds half a character (an unpaired surrogate)") from None
    return Read(value)


def check_shape(body: bytes, longest: int) -> None:
    """Refuse a body by its brackets, commas and digits alone: lists, objects, depths and numbers that are too large.

    Args:
        body: The body; what stands behind the first mistake of its JSON does not matter, as that is never read.
        longest: How many items a list may have.
    """
    opened: list[tuple[int, str]] = []  # the limit of each list and object that is open, and the list's name
    counts: list[int] = []
    last = name = b""
    values = 0
    for match in _PIECE.finditer(body):
        piece = match[0]
        first = piece[0]
        if first == 0x22:  # a quote
            last = piece
        elif first == 0x2C:  # ,
            values += 1
            if counts:
                counts[-1] += 1
                if counts[-1] > opened[-1][0]:
                    _refuse_long(*opened[-1])
        elif first == 0x3A:  # :
            name = last
        elif first in b"[{":
            values += 1
            opened.append((longest, _shown(name)) if first == 0x5B else (_KEYS, ""))
            counts.append(1)
            name = b""
            if len(opened) > _DEPTH:
                raise Refused(400, "not_json", f"the body is nested more than {_DEPTH} deep")
        elif first in b"]}":
            if opened:
                opened.pop()
                counts.pop()
        else:
            raise Refused(422, "invalid", f"a number has {_DIGITS} digits or more")
        if values > _VALUES:
            raise Refused(422, "too_many_texts", f"a request may have {_VALUES:,} values at most")


def _refuse_long(limit: int, name: str) -> None:
    if name:
        raise Refused(422, "too_many_texts", f"{name}: at most {limit:,} are taken at a time, and more were given")
    raise Refused(422, "too_many_texts", f"a list or an object has more than {limit:,} items")


def _shown(name: bytes) -> str:
    return name[1:-1][:40].decode("ascii", "replace")


class ReadRoute(APIRoute):
    """A route whose body was read before."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """FastAPI's, with a request that knows its JSON."""
        handle = super().get_route_handler()

        async def read(request: Request) -> Response:
            answered: Response = await handle(_ReadRequest(request.scope, request.receive))
            return answered

        return read


class _ReadRequest(Request):
    async def json(self) -> Any:
        """What the body says."""
        found: Read | None = self.scope["state"].get(_READ)
        if found is None:
            return await super().json()
        if found.error is not None:
            raise found.error
        return found.value
