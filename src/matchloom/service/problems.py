"""What is refused, and how it is told: always the same JSON, with a code for programs and a line for people."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from matchloom.basics.screen import printable
from matchloom.types import MatchloomError


class Refused(Exception):  # noqa: N818 (nothing went wrong here)
    """A request that gets no answer: the status, a code that stays the same, and one line.

    `retry` is in how many seconds it may be tried again.
    """

    def __init__(self, status: int, code: str, message: str, *, retry: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry = retry


def problem(refused: Refused, request_id: str) -> Response:
    """The answer that tells it."""
    message = printable(refused.message)
    told: dict[str, Any] = {
        "error": {"code": refused.code, "message": message, "request_id": request_id},
        "detail": message,
    }
    headers = {} if refused.retry is None else {"retry-after": str(refused.retry)}
    if refused.status == 401:
        headers["www-authenticate"] = 'Bearer realm="matchloom"'
    return Response(msgspec.json.encode(told), refused.status, headers, "application/json")


def overloaded(why: str) -> Refused:
    """More than can be done now: the client may come again soon."""
    return Refused(503, "overloaded", f"{why}; try again in a second", retry=1)


def refusal_of(error: MatchloomError, status: int, code: str) -> Refused:
    """What the library refuses, as it is told here; what cannot be written for want of room is nobody's conflict."""
    if error.code == "unwritable":
        return Refused(507, "unwritable", str(error))
    return Refused(status, code, str(error))


def unknown(what: str, name: str, known: list[str]) -> Refused:
    """A name that nothing has."""
    listed = ", ".join(known) or "none"
    return Refused(404, "unknown", f"{what} {name[:80]!r} is unknown; there is {listed}")
