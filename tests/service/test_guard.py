"""The door: keys, hosts, origins, bodies, request ids, headers, logs."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from matchloom.service.guard import POLICY
from matchloom.service.keys import VARIABLE, Keys, read_keys
from matchloom.service.limits import Limits
from matchloom.service.logs import JsonLines
from matchloom.types import MatchloomError
from tests.refusing import refused
from tests.service.making import ask, code_of, make_app, within

KEY = "correct-horse-battery"


@pytest.fixture(scope="module")
def guarded(served: Path) -> FastAPI:
    return make_app(served, "mv", key=KEY, limits=Limits(body=2000, characters=400, words=20, texts=3, upload=0.2))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {KEY}"},
        {"authorization": f"Bearer {KEY}x"},
        {"authorization": f"Bearer {KEY[:-1]}"},
        {"authorization": "Bearer "},
        {"x-api-key": ""},
        {"x-api-key": "é"},
        {"cookie": f"key={KEY}"},
    ],
)
def test_a_wrong_key_is_refused(guarded: FastAPI, headers: dict[str, str]) -> None:
    raw = {name: value.encode("latin-1") for name, value in headers.items()}

    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [
            await client.post("/v1/rank", json={"query": "a", "candidates": ["b"]}, headers=raw),
            await client.get("/metrics", headers=raw),
            await client.post("/v1/reload", json={}, headers=raw),
        ]

    for response in within(guarded, work):
        assert code_of(response) == (401, "wrong_key")
        assert response.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("headers", [{"authorization": f"bearer {KEY}"}, {"x-api-key": KEY}])
def test_a_right_key_is_taken_and_the_page_needs_none(guarded: FastAPI, headers: dict[str, str]) -> None:
    assert ask(guarded, "/v1/rank", {"query": "a", "candidates": ["b"]}, **headers).status_code == 200
    for path in ("/", "/health", "/ready", "/openapi.json"):
        assert ask(guarded, path).status_code == 200
    assert ask(guarded, "/health", host="matchloom.example").status_code == 200, "with a key any name will do"


def test_keys_are_read_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n\nanother-long-enough-key\n", encoding="utf-8")
    keys = read_keys(file, {VARIABLE: "third-long-enough-key"})
    for key in (KEY, "another-long-enough-key", "third-long-enough-key"):
        assert keys.allow({b"x-api-key": key.encode()})
        assert key not in repr(keys) + repr(vars(keys))
    assert not keys.allow({})
    assert Keys().allow({})
    assert not read_keys(None, {})
    for content, said in (("", "empty"), ("short\n", "16"), ("with a space in it\n", "spaces")):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(MatchloomError, match=said) as found:
            read_keys(file, {})
        assert "short" not in str(found.value)
    with refused("unreadable", "cannot"):
        read_keys(tmp_path / "none", {})


@pytest.mark.parametrize(
    ("host", "fine"),
    [
        ("localhost:8000", True),
        ("127.0.0.1", True),
        ("[::1]:8000", True),
        ("matchloom.example", False),
        ("localhost.example", False),
        ("127.0.0.1.example:80", False),
        ("", False),
    ],
)
def test_without_a_key_only_this_machine_s_names_lead_here(app: FastAPI, host: str, fine: bool) -> None:
    response = ask(app, "/v1/systems", host=host)
    assert response.status_code == 200 if fine else code_of(response) == (421, "wrong_host")


def test_pages_of_other_sites_may_not_ask(app: FastAPI) -> None:
    body = {"query": "a", "candidates": ["b"]}
    assert ask(app, "/v1/rank", body, origin="http://localhost").status_code == 200
    for origin in ("https://evil.example", "null", "http://localhost:1"):
        assert code_of(ask(app, "/v1/rank", body, origin=origin)) == (403, "cross_origin")


def send(app: FastAPI, content: Any, kind: str | None = "application/json", **headers: str) -> httpx.Response:
    async def work(client: httpx.AsyncClient) -> httpx.Response:
        given = {"x-api-key": KEY, **({} if kind is None else {"content-type": kind}), **headers}
        return await client.post("/v1/rank", content=content, headers=given)

    return within(app, work)


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (b"{", "application/json", (422, "invalid")),
        (b"", "application/json", (422, "invalid")),
        (b"[]", "application/json", (422, "invalid")),
        (b"null", "application/json", (422, "invalid")),
        (b"\xff\xfe{}", "application/json", (400, "not_json")),
        (b'{"query": "\xff", "candidates": []}', "application/json", (400, "not_json")),
        (b'{"query": "\\ud800", "candidates": []}', "application/json", (422, "invalid")),
        (b'{"query": "a", "candidates": ["b\\udc00"]}', "application/json", (422, "invalid")),
        (b"[" * 1900, "application/json", (400, "not_json")),
        (b"{}", "text/plain", (415, "not_json")),
        (b"{}", None, (415, "not_json")),
        (b"query=a", "application/x-www-form-urlencoded", (415, "not_json")),
        (b" " * 2001, "application/json", (413, "too_large")),
        (json.dumps({"query": "a" * 401, "candidates": []}).encode(), "application/json", (422, "text_too_long")),
        (json.dumps({"query": "a " * 21, "candidates": []}).encode(), "application/json", (422, "too_many_words")),
        (json.dumps({"query": "a", "candidates": ["b"] * 4}).encode(), "application/json", (422, "too_many_texts")),
        (json.dumps({"query": "a", "candidates": [], "top": 1e400}).encode(), "application/json", (422, "invalid")),
    ],
)
def test_bodies_that_cannot_be_taken(
    guarded: FastAPI, content: bytes, kind: str | None, expected: tuple[int, str]
) -> None:
    assert code_of(send(guarded, content, kind)) == expected


@pytest.mark.parametrize(
    "text", ["\x00\x07", "a\u202eb", "﷽" * 10, "𝕒" * 20, "<script>", "ا" * 30, "\\", '"', "\r\n", "\\ud800"]
)
def test_any_other_text_is_taken(guarded: FastAPI, text: str) -> None:
    response = send(guarded, json.dumps({"query": text, "candidates": [text, text + "x"]}))
    assert response.status_code == 200
    assert {one["text"] for one in response.json()["ranking"]} == {text, text + "x"}


def test_a_body_that_comes_in_pieces_or_too_slowly(guarded: FastAPI) -> None:
    whole = json.dumps({"query": "a", "candidates": ["b"]}).encode()

    async def in_pieces(pause: float) -> Any:
        for start in range(0, len(whole), 7):
            yield whole[start : start + 7]
            await asyncio.sleep(pause)

    async def endless() -> Any:
        while True:
            yield b" " * 500

    assert send(guarded, in_pieces(0)).status_code == 200
    assert code_of(send(guarded, in_pieces(0.3))) == (408, "too_slow")
    assert code_of(send(guarded, endless())) == (413, "too_large")


def test_every_answer_has_safe_headers_and_an_id(app: FastAPI) -> None:
    for path, body in (("/", None), ("/v1/systems", None), ("/none", None), ("/v1/rank", {})):
        headers = ask(app, path, body, **{"x-request-id": "my.own-id_1"}).headers
        assert headers["x-request-id"] == "my.own-id_1"
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in POLICY
    for odd in ("a b", "x" * 65, "<script>", ""):
        assert ask(app, "/health", **{"x-request-id": odd}).headers["x-request-id"] != odd


def test_the_log_has_a_line_of_json_without_texts_or_keys(guarded: FastAPI, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "matchloom.service"):
        ask(guarded, "/v1/rank?secret=word", {"query": "secret", "candidates": ["secret"]}, **{"x-api-key": KEY})
        ask(guarded, "/v1/%1b[2J", {"query": "secret", "candidates": []}, **{"x-api-key": "secret-key-secret-key"})
    lines = [JsonLines().format(record) for record in caplog.records]
    first, second = map(json.loads, lines)
    assert (first["event"], first["path"], first["status"]) == ("request", "/v1/rank", 200)
    assert (second["status"], second["level"]) == (401, "warning")
    assert not any("secret" in line or KEY in line or "\x1b" in line for line in lines)
    assert first["ms"] >= 0


def test_a_bug_of_ours_is_told_by_its_id_alone(
    served: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret inside")

    monkeypatch.setattr("matchloom.service.handlers.rank", broken)
    response = ask(make_app(served, "mv"), "/v1/rank", {"query": "a", "candidates": ["b"]})
    assert response.status_code == 500
    assert "secret" not in response.text
    assert any("ZeroDivisionError" in JsonLines().format(record) for record in caplog.records)
