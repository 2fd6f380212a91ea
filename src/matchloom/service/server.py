"""A serving process: a socket, uvicorn, signals. It ends when everything that was accepted is answered."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import ipaddress
import signal
import socket
import termios
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from matchloom.basics.memory import keep_memory
from matchloom.service.limits import Limits
from matchloom.service.pauses import keep_short
from matchloom.service.service import Service
from matchloom.types import MatchloomError

_HEAD = 10.0  # seconds in which the head of a request must have arrived
_LAST = 0.5  # seconds that a new connection has for its first request when the service ends
_NEW = 2  # what is worth most of all that could be closed
_GRACE = 1.0  # seconds that a new connection may be silent before it is an idle one
_IDLE = 30  # seconds that a connection may be kept without a request
_END = 12  # seconds in which accepted requests are finished
_PIECE, _CRUMBS = 16_384, 500  # bytes that are read at a time, and ends of lines in so many bytes of a chunked body
_AT_ONCE = 16  # connections that are taken before others are served again
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%s"
)
_TOLD = b'{"error":{"code":"overloaded","message":"too many connections; try again in a second","request_id":""}}'


class Punctual(H11Protocol):
    """A connection whose client does not finish the head of a request in time is closed; uvicorn would wait forever.

    There are `most` of them at a time. One more closes another: of those that wait for their client, one of the address
    that has most of them, first who has said nothing for a second, then who sent half a head, last who is new or has a
    body on its way. Where all are at work, the new one is told to come again.
    """

    most = Limits.connections
    _late: asyncio.TimerHandle | None = None
    _heard = 0.0  # when it last said something
    _since = 0.0  # since when a request is awaited, or the rest of one
    _half = False  # whether half a head is there

    def connection_made(self, transport: Any) -> None:
        """The first request is awaited."""
        full = len(self.connections) >= self.most and not self._close_another()
        super().connection_made(transport)
        self._heard = self._since = self.loop.time()
        if full:
            transport.write(_FULL % (len(_TOLD), _TOLD))
            transport.close()
            return
        self._await_head()

    def _close_another(self) -> bool:
        """Close one, or some, that wait for their clients: of the address that has most of them, the idlest."""
        waiting = [one for one in self.connections if isinstance(one, Punctual) and one.waits]
        many = Counter(one.address for one in waiting)
        now = self.loop.time()
        ordered = sorted((-many[one.address], *one._worth(now), n) for n, one in enumerate(waiting))
        closed = 0
        for _, worth, _, n in ordered:  # some at once, as looking at all of them takes a moment
            if closed and (worth == _NEW or closed >= self.most // 32):
                break
            one = waiting[n]
            if not one.has_unread:  # what was sent and not yet read would be answered with a reset
                self.connections.discard(one)
                one.transport.close()
                closed += 1
        return closed > 0

    def _worth(self, now: float) -> tuple[int, float]:
        """What is closed last: those that are new, or send a body now, before which go half heads."""
        since = self._heard if self.conn.their_state is h11.SEND_BODY else self._since
        return 0 if now - since >= _GRACE else 1 if self._half else _NEW, since

    @property
    def address(self) -> str:
        """Of the client."""
        return self.client[0] if self.client else ""

    @property
    def waits(self) -> bool:
        """Whether a request is awaited, or the rest of one, and none is answered."""
        state = self.conn.their_state
        answered = self.cycle is None or self.cycle.response_complete
        return state is h11.SEND_BODY or (state is h11.IDLE and answered)

    @property
    def has_unread(self) -> bool:
        """Whether its client has said something that was not read yet."""
        made = self.transport.get_extra_info("socket")
        with suppress(OSError, ValueError):
            return made is not None and any(fcntl.ioctl(made.fileno(), termios.FIONREAD, b"\0" * 4))
        return False

    def data_received(self, data: bytes) -> None:
        """Part of a request, in pieces that do not take long."""
        self._heard, before = self.loop.time(), self.conn.their_state
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                return
            piece = data[start : start + _PIECE]
            if self.conn.their_state is h11.SEND_BODY and piece.count(b"\r\n") > _CRUMBS and self._is_chunked:
                self.transport.close()  # a body in crumbs, each of which costs as much as a request
                return
            super().data_received(piece)
        state = self.conn.their_state
        self._half = state is h11.IDLE and bool(self.conn.trailing_data[0])
        if state is not before or not self._half:
            self._since = self._heard  # who sends a head letter by letter does not become newer
        if state is not h11.IDLE:
            self._forget()
        elif self._late is None:
            self._await_head()

    def on_response_complete(self) -> None:
        """The next request is awaited from now on."""
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def _is_chunked(self) -> bool:
        return any(name == b"transfer-encoding" for name, _ in self.headers or ())

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self._forget()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The service ends. A client who has just connected may be about to ask, and gets a moment for it."""
        if self.cycle is None:
            self.loop.call_later(_LAST, self._end)
        else:
            super().shutdown()

    def _end(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()

    def _await_head(self) -> None:
        self._late = self.loop.call_later(_HEAD, self._close_late)

    def _close_late(self) -> None:
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class Patient(socket.socket):
    """A listening socket that gives a few connections at a time: asyncio would take two thousand, and serve nobody."""

    _given = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """A connection, and from time to time none, though more may wait."""
        self._given = (self._given + 1) % (_AT_ONCE + 1)
        if not self._given:
            raise BlockingIOError
        return super().accept()


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens, or one line that says why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP: only then does asyncio send small pieces at once, and an answer is not held back by 40 milliseconds.
    made = Patient(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(2048)
    except (OSError, OverflowError) as error:
        made.close()
        why = getattr(error, "strerror", None) or error
        raise MatchloomError(
            f"cannot listen on {host} port {port}: {why}; choose another with --port", code="busy"
        ) from None
    return made


def config_of(app: Any, *, http: type[Punctual] = Punctual, **options: Any) -> uvicorn.Config:
    """How uvicorn serves the app."""
    return uvicorn.Config(
        app,
        http=http,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_END,
        **options,
    )


def reload_on_hup(service: Service) -> None:
    """SIGHUP reads everything anew, from now on; called in the running loop."""
    reloading: set[asyncio.Task[Any]] = set()

    def reload() -> None:
        task = asyncio.create_task(service.reload())
        reloading.add(task)  # a task that nobody holds may be gone before it is done
        task.add_done_callback(reloading.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)


def run(app: FastAPI, listening: socket.socket, *, when_ready: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or Ctrl-C; SIGHUP reads everything anew. What cannot be read at the start is an error.

    Args:
        app: What `create_app` made.
        listening: What `bind` made.
        when_ready: Called when everything is loaded.
    """
    keep_memory()
    keep_short()
    server = uvicorn.Server(config_of(app))
    service: Service = app.state.service

    def fail() -> None:
        server.should_exit = True

    def ready() -> None:
        reload_on_hup(service)
        gc.freeze()  # what was read stays: nobody need wait for a walk through it
        when_ready()

    service.when_failed, service.when_ready = fail, ready
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    if service.failure is not None:
        raise service.failure
