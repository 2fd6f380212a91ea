"""Bodies that could hold a million values: refused by their shape, before anything is made of them."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from matchloom.service.bodies import check_shape, read_body
from matchloom.service.limits import Limits
from matchloom.service.problems import Refused
from matchloom.service.room import SMALL, Held, Room
from matchloom.service.server import Punctual
from tests.service.making import ask, code_of, make_app, running

MILLION = 1_000_000
BOMBS = {
    "numbers": '{"candidates":[' + "0," * 900_000 + "0]}",
    "lists": '{"candidates":[' + "[]," * 600_000 + "[]]}",
    "objects": '{"candidates":[' + '{"":0},' * 250_000 + "{}]}",
    "empty texts": '{"candidates":[' + '"",' * 600_000 + '""]}',
    "keys": "{" + ",".join(f'"{n:x}":0' for n in range(150_000)) + "}",
    "lists of lists": "[" + ",".join(["[" + "0," * 900 + "0]"] * 900) + "]",
    "deep lists": "[" * MILLION,
    "deep objects": '{"a":' * 300_000,
    "a long number": '{"top":' + "9" * 1_900_000 + "}",
    "long numbers": '{"candidates":[' + ",".join(["9" * 4000] * 400) + "]}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_by_its_shape_at_a_small_part_of_what_reading_it_costs(name: str) -> None:
    body = BOMBS[name].encode()
    with pytest.raises(Refused) as found:
        check_shape(body, 1000)
    assert found.value.status in (400, 422)


@pytest.mark.parametrize("name", BOMBS)
def test_every_route_refuses_it(app: FastAPI, name: str) -> None:
    given = httpx.Request("POST", "http://localhost", content=BOMBS[name])
    for path in ("/v1/rank", "/v1/score", "/v1/search", "/v1/explain", "/v1/feedback", "/v1/reload"):
        response = _sent(app, path, given.content)
        status, code = code_of(response)
        assert (status, code) in {(400, "not_json"), (422, "too_many_texts"), (422, "invalid")}
        assert len(response.content) < 1000


def test_the_list_that_is_too_long_is_named(app: FastAPI) -> None:
    response = ask(app, "/v1/rank", {"query": "a", "candidates": ["b"] * 1001})
    assert code_of(response) == (422, "too_many_texts")
    assert response.json()["error"]["message"].startswith("candidates: ")


@pytest.mark.parametrize(
    "plain",
    [
        {"query": "[[[[{{{{,,,,", "candidates": ["]]]" * 2000, '\\"' * 500, "9" * 5000]},
        {"query": "é\\u0000" * 900, "candidates": ["😀" * 400] * 1000},
        {"a": {"b": {"c": [{"d": [1.5, -2e300, None, True]}]}}},
        [],
        "text",
    ],
)
def test_what_texts_hold_does_not_matter(plain: object) -> None:
    for ascii_only in (True, False):
        assert read_body(json.dumps(plain, ensure_ascii=ascii_only).encode(), 1000).value == plain


@pytest.mark.parametrize("start", ['{"a":"', '{"a":"\\', '{"a', "[1,", '"\\u12'])
def test_a_body_that_breaks_off_is_no_json(start: str) -> None:
    assert read_body(start.encode(), 1000).error is not None


def _sent(app: FastAPI, path: str, content: bytes) -> httpx.Response:
    async def run() -> httpx.Response:
        app.state.service.shelf.ready or app.state.service.shelf.load()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post(path, content=content, headers={"content-type": "application/json"})

    return asyncio.run(run())


# ---- room


def test_half_bodies_give_way_and_no_client_takes_all_room() -> None:
    async def run() -> None:  # nothing is awaited, so that no timeout cancels it
        room = Room(10 * SMALL)
        halves = [Held(room, f"client {n}") for n in range(6)]
        for one in halves:
            one.arriving = asyncio.timeout(60)
            await one.arriving.__aenter__()
            assert one.grow(3 * SMALL)  # two of them need room
        assert room.taken <= 10 * SMALL
        assert [one.gave_way for one in halves] == [True, False, False, False, False, False]
        whole = Held(room, "client 9")
        assert whole.grow(5 * SMALL)
        assert halves[1].gave_way, "the oldest first"
        greedy = Held(room, "client 9")
        assert not greedy.grow(3 * SMALL), "half of it is the most that one client has"
        assert greedy.grow(SMALL), "what is small needs no room"
        for one in (*halves, whole, greedy):
            one.leave()
        assert room.taken == 0

    asyncio.run(run())


# ---- connections


@pytest.fixture
def few(served: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Punctual, "most", 8)
    with running(make_app(served, "mv", limits=Limits(upload=5))) as url:
        yield url


def test_idle_connections_give_way_and_half_requests_do_not_keep_others_out(few: str) -> None:
    port = int(few.rpartition(":")[2])
    idle = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(40)]
    assert httpx.get(f"{few}/health").status_code == 200
    gone = 0
    for one in idle:
        one.settimeout(0.2)
        try:
            gone += one.recv(10) == b""
        except TimeoutError:
            continue
    assert gone >= 32
    head = (
        b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n"
    )
    busy = []
    for _ in range(30):
        busy.append(socket.create_connection(("127.0.0.1", port), timeout=20))
        busy[-1].sendall(head + b" " * 1000)
        assert httpx.get(f"{few}/health").status_code == 200
    for one in (*idle, *busy):
        one.close()


def test_who_has_just_connected_is_not_closed_for_those_who_hold_half_requests(
    few: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest silent connection was closed first: a client that waited a moment before it asked was reset."""
    monkeypatch.setattr("matchloom.service.server._GRACE", 60.0)  # however slow this machine is now
    port = int(few.rpartition(":")[2])
    new = socket.create_connection(("127.0.0.1", port), timeout=20)
    halves = []
    for n in range(40):
        halves.append(socket.create_connection(("127.0.0.1", port), timeout=20))
        with suppress(OSError):
            halves[-1].sendall(b"GET /hea" if n % 2 else b"P")
        time.sleep(0.002)
    new.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert new.recv(100).startswith(b"HTTP/1.1 200")
    for one in (new, *halves):
        one.close()


def _answer(made: socket.socket) -> bytes:
    """All that is answered, which may come in pieces."""
    found = b""
    while not found.endswith(b"}") and (piece := made.recv(1000)):
        found += piece
    return found


def test_a_request_on_its_way_keeps_its_connection(few: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sent and not read yet counts: a connection that was kept for the next request is not reset under it."""
    port = int(few.rpartition(":")[2])
    kept = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(8)]
    asked = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for one in kept:
        one.sendall(asked)
        assert _answer(one).startswith(b"HTTP/1.1 200")
    time.sleep(1.1)  # idle by now
    inner = Punctual.connection_made

    def made(self: Punctual, transport: Any) -> None:
        for one in kept[:4]:
            one.sendall(asked)  # at the moment at which another connects
        inner(self, transport)

    monkeypatch.setattr(Punctual, "connection_made", made)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as other:
        other.sendall(asked)
        assert _answer(other).startswith(b"HTTP/1.1 200")
    monkeypatch.undo()
    for one in kept[:4]:
        assert _answer(one).startswith(b"HTTP/1.1 200")
    for one in kept:
        one.close()


def test_a_body_in_crumbs_is_let_go(few: str) -> None:
    port = int(few.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as made:
        made.sendall(b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        time.sleep(0.05)
        try:
            for _ in range(30):
                made.sendall(b"1\r\n \r\n" * 10_000)
            found = made.recv(1000)
        except ConnectionError:
            found = b""
    assert not found.startswith(b"HTTP/1.1 2")


@pytest.mark.parametrize("host", ["[", "[::1", "a]b[", "[x]"])
def test_a_host_that_is_none(app: FastAPI, host: str) -> None:
    assert code_of(ask(app, "/v1/systems", host=host)) in {(400, "bad_host"), (421, "wrong_host")}
