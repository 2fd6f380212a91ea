"""The door: every request passes here before FastAPI sees it.

It names the request, looks at its host, origin and key, takes in its body (within its size and time), drops the work
of a client who has gone, adds the headers that keep a browser safe, counts, and writes the one line of the log. A
request that is slow to arrive holds a connection and nothing else: it is not admitted before it is whole.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import regex
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from matchloom.service.keys import Keys
from matchloom.service.limits import Limits
from matchloom.service.logs import say
from matchloom.service.metrics import Metrics
from matchloom.service.origins import Headers, Origins, is_for_owners
from matchloom.service.problems import Refused, problem

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_SAFE = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
_GUARDED = ("/v1/", "/v2/", "/rerank", "/metrics")
_GIVEN_ID = regex.compile(rb"[A-Za-z0-9._-]{1,64}")
_HERE = regex.compile(r"localhost|127(\.[0-9]{1,3}){3}|::1")
_HALF = regex.compile(rb"\\u[dD][89a-fA-F]")
_QUICK = SimpleNamespace(path="/v1/search")  # the route of what is answered here, for the figures
_SEND = 30.0  # seconds that a client may take to read what it asked for


Quick = Callable[[Scope, bytes], asyncio.Future[bytes] | None]


class Guard:
    """Wraps the app. A service with keys may be reached by any name, one without by this machine's alone."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits,
        keys: Keys,
        metrics: Metrics,
        origins: Origins | None = None,
        quick: Quick = lambda *_: None,
    ) -> None:
        self._app, self._limits, self._keys, self._metrics, self._quick = app, limits, keys, metrics, quick
        self._origins = origins or Origins()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request_id = given.decode() if _GIVEN_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(send, request_id)
        start = time.perf_counter()
        state = "answered"
        try:
            answer.shared = self._check(scope, headers)
            told = self._origins.preflight(scope["method"], headers)
            if told is not None:
                await self._tell(answer, told)
                return
            self._check_key(scope, headers)
            body = await self._body(receive, headers)
            quick = self._quick(scope, body)
            if quick is not None:
                await self._send(scope, answer, await quick)
            elif not await self._run(scope, receive, answer, body):
                state = "vanished"
                self._metrics.vanished.inc()
        except Refused as refused:
            self._metrics.rejected.labels(refused.code).inc()
            response = problem(refused, request_id)
            if refused.status in (408, 413):
                response.headers["connection"] = "close"  # what it still sends is not read
            await response(scope, receive, answer)
        except ConnectionError:
            state = "vanished"
            self._metrics.vanished.inc()
        except TimeoutError:
            state = "unread"  # the client reads nothing; it is let go
        except Exception:
            state = "failed"
            say("failed", level=logging.ERROR, request_id=request_id)
            logging.getLogger("matchloom.service").exception("traceback", extra={"fields": {"request_id": request_id}})
            if not answer.status:
                await problem(Refused(500, "failed", "a bug of ours; the log has it under this id"), request_id)(
                    scope, receive, answer
                )
        finally:
            self._count(scope, answer.status, time.perf_counter() - start, state, request_id)

    def _check(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Headers:
        """Host and origin; the headers that the answer has for its page."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._keys and not _HERE.fullmatch(urlsplit(f"//{host}").hostname or ""):
            # Another site's name that leads here would make a visitor's browser ask on that site's behalf.
            raise Refused(421, "wrong_host", "without an API key this service is reached as localhost only")
        return self._origins.check(headers.get(b"origin"), host, scope["path"])

    def _check_key(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """The key, whose holder the routes may ask for."""
        path = scope["path"]
        if not path.startswith(_GUARDED):
            return
        holder = self._keys.holder(headers)
        if holder is None:
            raise Refused(401, "wrong_key", "expected a key that is known, as 'Authorization: Bearer KEY'")
        if not holder.owner and is_for_owners(path):
            raise Refused(403, "ask_only", "this key may ask, and not change or see what is for owners")
        scope["state"]["holder"] = holder

    async def _body(self, receive: Receive, headers: Mapping[bytes, bytes]) -> bytes:
        """The whole body, unless it is too large or too slow."""
        too_large = Refused(413, "too_large", f"a request may have {self._limits.body:,} bytes")
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > self._limits.body:
            raise too_large
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.upload):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ConnectionError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._limits.body:
                        raise too_large
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise Refused(
                408, "too_slow", f"the request did not arrive within {self._limits.upload:g} seconds"
            ) from None
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if size and kind != b"application/json":  # also what a form of another site could send unasked
            raise Refused(415, "not_json", "expected JSON, with 'Content-Type: application/json'")
        body = b"".join(parts)
        _check_letters(body)
        return body

    @staticmethod
    async def _tell(answer: _Answer, headers: Headers) -> None:
        """That a page may ask, with nothing else."""
        await answer({"type": "http.response.start", "status": 204, "headers": headers})
        await answer({"type": "http.response.body", "body": b""})

    async def _send(self, scope: Scope, answer: _Answer, content: bytes) -> None:
        """An answer that was there at once."""
        scope["route"] = _QUICK
        headers = [(b"content-length", str(len(content)).encode()), (b"content-type", b"application/json")]
        await answer({"type": "http.response.start", "status": 200, "headers": headers})
        await answer({"type": "http.response.body", "body": content})

    async def _run(self, scope: Scope, receive: Receive, answer: _Answer, body: bytes) -> bool:
        """Let the app answer; False if the client went away first, whose work is then dropped."""
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else {"type": "http.disconnect"}

        work = asyncio.ensure_future(self._app(scope, replay, answer))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not answer.status:
                return False
            await work
            return True
        finally:
            for task in (work, gone):
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task

    def _count(self, scope: Scope, status: int, seconds: float, state: str, request_id: str) -> None:
        route = getattr(scope.get("route"), "path", "other")
        if status:
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(seconds)
        level = logging.ERROR if status >= 500 and status != 503 else logging.WARNING if status >= 400 else logging.INFO
        fields: dict[str, Any] = {"state": state} if state != "answered" else {}
        client = scope.get("client")
        say(
            "request",
            level=level,
            request_id=request_id,
            method=scope["method"],
            path=scope["path"][:200],
            status=status,
            ms=round(1000 * seconds, 2),
            client=client[0] if client else None,
            **fields,
        )


def _check_letters(body: bytes) -> None:
    """Refuse what is no UTF-8, and texts with half a character, which JSON can write and no answer could hold."""
    try:
        body.decode()
        if _HALF.search(body):  # most of these are halves of whole characters
            json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refused(422, "invalid", "a text holds half a character (an unpaired surrogate)") from None
    except UnicodeDecodeError:
        raise Refused(400, "not_json", "the body is not UTF-8") from None
    except (ValueError, RecursionError):
        return  # no JSON at all, which is told where it is read


class _Answer:
    """What sends: it adds headers, remembers the status, and lets go of a client who reads nothing."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self._id = send, request_id.encode()
        self.status = 0
        self.shared: Headers = []  # for the page that asks

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = message.get("headers", [])
            message["headers"] = [*own, *_SAFE, *self.shared, (b"x-request-id", self._id)]
        async with asyncio.timeout(_SEND):
            await self._send(message)
