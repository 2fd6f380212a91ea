"""Clients that lie, dawdle and vanish, over a real socket: each is let go, and others are served meanwhile."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from matchloom.service.limits import Limits
from tests.service.making import make_app, running

BODY = json.dumps({"query": "reset password", "candidates": ["choose Reset", "ask sales"]}).encode()


@pytest.fixture(scope="module")
def hostile_app(served: Path) -> FastAPI:
    return make_app(served, "mv", limits=Limits(body=10_000, upload=0.3))


@pytest.fixture(scope="module")
def url(hostile_app: FastAPI) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matchloom.service.server._HEAD", 0.3)
        with running(hostile_app) as address:
            yield address


@pytest.fixture(autouse=True)
def _still_served(url: str) -> Iterator[None]:
    yield
    response = httpx.post(f"{url}/v1/rank", content=BODY, headers={"content-type": "application/json"})
    assert response.status_code == 200
    assert len(response.json()["ranking"]) == 2


def connect(url: str) -> socket.socket:
    port = int(url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def head(length: int, *more: str) -> bytes:
    lines = ["POST /v1/rank HTTP/1.1", "Host: localhost", "Content-Type: application/json", *more]
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


def said(url: str, *parts: bytes) -> bytes:
    """What the service says to this, until it closes the connection."""
    with connect(url) as made:
        for part in parts:
            made.sendall(part)
        found = b""
        try:
            while got := made.recv(65536):
                found += got
        except ConnectionResetError:
            pass
        return found


@pytest.mark.slow
def test_a_request_that_never_ends_is_let_go(url: str) -> None:
    assert said(url, b"POST /v1/rank HTT") == b"", "no head"
    assert said(url) == b"", "nothing at all"
    slow = said(url, head(len(BODY)), BODY[:-5])
    assert slow.startswith(b"HTTP/1.1 408 ")
    assert b'"too_slow"' in slow


@pytest.mark.slow
def test_a_head_that_comes_letter_by_letter_is_let_go(url: str) -> None:
    def dawdle(made: socket.socket) -> None:
        for letter in head(5) * 100:
            made.sendall(bytes([letter]))
            time.sleep(0.02)

    with connect(url) as made, pytest.raises(OSError, match=r"(?i)reset|pipe"):
        dawdle(made)


@pytest.mark.parametrize(
    "parts",
    [
        (head(10**12),),
        (head(20_000), b" " * 20_000),
        (
            b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"4e20\r\n",
            b" " * 20_000,
        ),
    ],
)
def test_a_large_body_is_told_and_closed(url: str, parts: tuple[bytes, ...]) -> None:
    found = said(url, *parts)
    assert found.startswith(b"HTTP/1.1 413 ")
    assert b'"too_large"' in found
    assert b"connection: close" in found.lower()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # somebody speaks TLS
        b"\x00" * 100,
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nBad Header: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_request_is_refused(url: str, sent: bytes) -> None:
    found = said(url, sent)
    assert found == b"" or found.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 ", b"HTTP/1.1 408 "))


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../../etc/passwd",
        "/static/%2e%2e/app.py",
        "//etc/passwd",
        "/static//etc/passwd",
        "/static/app.py%00",
    ],
)
def test_tricks_in_paths_lead_nowhere(url: str, path: str) -> None:
    found = said(url, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert found.startswith(b"HTTP/1.1 404 ")
    assert b"root:" not in found


def test_clients_that_vanish_leave_nothing_behind(url: str, hostile_app: FastAPI) -> None:
    for _ in range(20):
        with connect(url) as made:
            made.sendall(head(len(BODY)) + BODY)  # it does not wait for its answer
        with connect(url) as made:
            made.sendall(head(len(BODY)) + BODY[:10])  # nor even ends its question
    idle = [connect(url) for _ in range(50)]
    value = hostile_app.state.service.metrics.registry.get_sample_value
    assert httpx.get(f"{url}/health").status_code == 200, "fifty who say nothing keep nobody waiting"
    for made in idle:
        made.close()
    for _ in range(100):
        if value("matchloom_waiting_requests") == 0:
            break
        time.sleep(0.05)
    assert value("matchloom_waiting_requests") == 0


def test_two_requests_in_one_breath_are_both_answered(url: str) -> None:
    found = said(url, head(len(BODY)) + BODY + head(len(BODY), "Connection: close") + BODY)
    assert found.count(b"HTTP/1.1 200 ") == 2
