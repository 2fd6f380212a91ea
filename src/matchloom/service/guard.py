"""The door: every request passes here before FastAPI sees it.

It names the request, looks at its host, origin and key, takes in its body (within its size and time), drops the work
of a client who has gone, adds the headers that keep a browser safe, counts, and writes the one line of the log. A
request that is slow to arrive holds a connection and nothing else: it is not admitted before it is whole. A few
requests begin at a time (`gate`); whether the process is alive is told here, and waits for none of them.
"""

from __future__ import annotations

import asyncio
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

from matchloom.service.bodies import Bodies
from matchloom.service.gate import Gate
from matchloom.service.keys import Keys
from matchloom.service.limits import Limits
from matchloom.service.logs import say
from matchloom.service.metrics import Metrics
from matchloom.service.origins import Headers, Origins, is_for_owners
from matchloom.service.problems import Refused, overloaded, problem
from matchloom.service.room import CLIENT, SMALL, Held, Room

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
HEALTH = "/health"
ALIVE = b'{"status":"alive"}'
_QUICK = SimpleNamespace(path="/v1/search")  # the route of what is answered here, for the figures
_HEALTH = SimpleNamespace(path=HEALTH)
_SEND = 30.0  # seconds that a client may take to read what it asked for


Quick = Callable[[Scope, bytes], asyncio.Future[bytes] | None]


def is_guarded(path: str) -> bool:
    """Whether a path needs a key, where there are keys."""
    return path.startswith(_GUARDED)


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
        self._app, self._keys, self._metrics, self._quick = app, keys, metrics, quick
        self._bodies = Bodies(limits, Room(limits.room))
        self._origins = origins or Origins()
        self._gate = Gate()

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
        CLIENT.set((scope.get("client") or ("",))[0])
        with self._bodies.held() as held:
            await self._serve(scope, receive, headers, _Answer(send, request_id, held), held)

    async def _serve(
        self, scope: Scope, receive: Receive, headers: Mapping[bytes, bytes], answer: _Answer, held: Held
    ) -> None:
        request_id: str = scope["state"]["request_id"]
        start = time.perf_counter()
        state = "answered"
        body: bytes | None = None
        try:
            answer.shared = self._check(scope, headers)
            told = self._origins.preflight(scope["method"], headers)
            if told is not None:
                await self._tell(answer, told)
                return
            if scope["path"] == HEALTH and scope["method"] == "GET" and not _sends_more(headers):
                await self._send(scope, answer, ALIVE, _HEALTH)
                return
            await self._gate.enter()
            self._check_key(scope, headers)
            body = await self._bodies.take(held, receive, headers)
            quick = self._quick(scope, body) if len(body) <= SMALL else None
            if quick is None and body:
                await self._bodies.read(scope, body)
            if quick is not None:
                await self._send(scope, answer, await quick, _QUICK)
            elif not await self._run(scope, receive, answer, body):
                state = "vanished"
                self._metrics.vanished.inc()
        except Refused as refused:
            self._metrics.rejected.labels(refused.code).inc()
            response = problem(refused, request_id)
            if body is None and _sends_more(headers):
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
                await problem(Refused(500, "failed", "an internal error; the log has it under this id"), request_id)(
                    scope, receive, answer
                )
        finally:
            self._count(scope, answer.status, time.perf_counter() - start, state, request_id)

    def _check(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Headers:
        """Host and origin; the headers that the answer has for its page."""
        host = headers.get(b"host", b"").decode("latin-1")
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:  # such as "["
            raise Refused(400, "bad_host", "the Host of the request is not a host name") from None
        if not self._keys and not _HERE.fullmatch(name):
            # Another site's name that leads here would make a visitor's browser ask on that site's behalf.
            raise Refused(421, "wrong_host", "without an API key this service accepts requests to localhost only")
        return self._origins.check(headers.get(b"origin"), host, scope["path"])

    def _check_key(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """The key, whose holder the routes may ask for."""
        path = scope["path"]
        if not is_guarded(path):
            return
        holder = self._keys.holder(headers)
        if holder is None:
            raise Refused(401, "wrong_key", "expected a valid key, as 'Authorization: Bearer KEY'")
        if not holder.owner and is_for_owners(path):
            raise Refused(
                403, "ask_only", "this key is for asking only: it may not change anything, nor see what is for owners"
            )
        scope["state"]["holder"] = holder
        CLIENT.set(f"{holder.name} {CLIENT.get()}")  # many may share the key of a page

    @staticmethod
    async def _tell(answer: _Answer, headers: Headers) -> None:
        """That a page may ask, with nothing else."""
        await answer({"type": "http.response.start", "status": 204, "headers": headers})
        await answer({"type": "http.response.body", "body": b""})

    async def _send(self, scope: Scope, answer: _Answer, content: bytes, route: SimpleNamespace) -> None:
        """An answer that was there at once."""
        scope["route"] = route
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


def _sends_more(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


class _Answer:
    """What sends: it adds headers, remembers the status, and lets go of a client who reads nothing.

    A large answer needs room until its client has read it. The head is held back till then: where there is no room, the
    client is told to come again.
    """

    def __init__(self, send: Send, request_id: str, held: Held) -> None:
        self._send, self._id, self._held = send, request_id.encode(), held
        self._head: Message | None = None
        self._refused = False
        self.status = 0
        self.shared: Headers = []  # for the page that asks

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self._head = message["status"], message
            return
        if self._refused:
            return
        if not self._held.grow(len(message.get("body", b""))):
            if self._head is None:
                raise TimeoutError  # a stream that nobody reads
            self._refused = True
            told = problem(overloaded("too many large answers wait to be read"), self._id.decode())
            self.status = told.status_code
            self._head = {**self._head, "status": told.status_code, "headers": told.raw_headers}
            message = {"type": "http.response.body", "body": told.body}
        if self._head is not None:
            head, self._head = self._head, None
            head["headers"] = [*head.get("headers", []), *_SAFE, *self.shared, (b"x-request-id", self._id)]
            await self._out(head)
        await self._out(message)

    async def _out(self, message: Message) -> None:
        async with asyncio.timeout(_SEND):
            await self._send(message)
