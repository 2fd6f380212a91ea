"""A request and what is made of its answer: sent again where the service says when, refused by one kind of error."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import httpx

from matchloom.types import MatchloomError

T = TypeVar("T")
_RETRIES = 3  # after a 503, which says when to come again, and after a connection that broke off
_LONGEST_WAIT, _PAUSE = 5.0, 0.5


class ServiceError(MatchloomError):
    """What a service refused: `status`, and `code`, which stays the same whatever the message says."""

    code: str  # type: ignore[assignment]  # a service has codes of its own

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Call(NamedTuple, Generic[T]):
    """One request, and what to make of its answer."""

    path: str
    body: dict[str, Any] | None  # None asks with GET
    read: Callable[[Any], T]
    put: bool = False  # PUT in place of POST
    verb: str = ""  # another one
    raw: bool = False  # whether the answer is a file, and no JSON
    writes: bool = False  # whether it changes what is kept

    @property
    def method(self) -> str:
        """How it is asked."""
        return self.verb or ("GET" if self.body is None else "PUT" if self.put else "POST")

    def headers(self) -> dict[str, str]:
        """Those of its own: a write that is sent again is the same one by its key, and is done once."""
        return {"idempotency-key": secrets.token_hex(16)} if self.writes else {}


def headers(key: str | None) -> dict[str, str]:
    """What every request says."""
    return {} if key is None else {"authorization": f"Bearer {key}"}


def seconds_to_wait(response: httpx.Response, tried: int) -> float | None:
    """How long to wait before asking again; None where the answer counts."""
    if response.status_code != 503 or tried >= _RETRIES:
        return None
    try:
        return max(0.0, min(_LONGEST_WAIT, float(response.headers.get("retry-after", "1"))))
    except ValueError:
        return 1.0


def seconds_after(error: httpx.HTTPError, tried: int, url: str) -> float:
    """The same where a connection broke off: what was sent may have arrived, and can be sent again all the same."""
    broke = isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError)
    if not broke or tried >= _RETRIES:
        raise unreachable(error, url) from None
    return _PAUSE


def read_answer(call: Call[T], response: httpx.Response) -> T:
    """What a call makes of its answer."""
    try:
        if call.raw and response.is_success:
            return call.read(response.content)
        found = response.json()
        if response.is_success:
            return call.read(found)
        error = found["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ServiceError(
            response.status_code, "unreadable", f"the answer to {call.path} cannot be read ({error}); is it matchloom?"
        ) from None
    raise ServiceError(response.status_code, code, message)


def unreachable(error: httpx.HTTPError, url: str) -> ServiceError:
    """Nobody answers."""
    return ServiceError(0, "unreachable", f"{url} does not answer: {str(error) or type(error).__name__}")
