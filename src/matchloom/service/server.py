"""A serving process: a socket, uvicorn, signals. It ends when everything that was accepted is answered."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import signal
import socket
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

    There are `most` of them at a time. One more closes the one that has been idle longest; where all are at work, it is
    told to come again.
    """

    most = Limits.connections
    _late: asyncio.TimerHandle | None = None
    _heard = 0.0  # when it last said something

    def connection_made(self, transport: Any) -> None:
        """The first request is awaited."""
        full = len(self.connections) >= self.most and not self._close_another()
        super().connection_made(transport)
        self._heard = self.loop.time()
        if full:
            transport.write(_FULL % (len(_TOLD), _TOLD))
            transport.close()
            return
        self._await_head()

    def _close_another(self) -> bool:
        """Close the connection that has said nothing longest: an idle one, or else one whose request is not whole."""
        for states in ((h11.IDLE,), (h11.SEND_BODY,)):
            some = [one for one in self.connections if isinstance(one, Punctual) and one.is_in(states)]
            if some:
                first = min(some, key=lambda one: one._heard)
                self.connections.discard(first)
                first.transport.close()
                return True
        return False

    def is_in(self, states: tuple[type, ...]) -> bool:
        """Whether a request is awaited, or the rest of one, and none is answered."""
        answered = self.cycle is None or self.cycle.response_complete
        return self.conn.their_state in states and (answered or h11.SEND_BODY in states)

    def data_received(self, data: bytes) -> None:
        """Part of a request, in pieces that do not take long."""
        self._heard = self.loop.time()
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                return
            piece = data[start : start + _PIECE]
            if self.conn.their_state is h11.SEND_BODY and piece.count(b"\r\n") > _CRUMBS and self._is_chunked:
                self.transport.close()  # a body in crumbs, each of which costs as much as a request
                return
            super().data_received(piece)
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif self._late is None:
            self._await_head()

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
