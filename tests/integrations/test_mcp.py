"""The Model Context Protocol server, asked by the protocol's own client: in memory, over pipes, over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from matchloom import Collection
from matchloom.cli import main

mcp = pytest.importorskip("mcp")
from mcp.client.client import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

from matchloom.integrations.mcp import http_app, make_server  # noqa: E402
from matchloom.service.limits import Limits  # noqa: E402

QUERY = "I forgot my password"


def ask(server: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The results of some calls, and at last the names of the tools."""

    async def work() -> list[Any]:
        async with Client(server) as client:
            found: list[Any] = [await client.call_tool(name, arguments) for name, arguments in calls]
            return [*found, [tool.name for tool in (await client.list_tools()).tools]]

    return asyncio.run(work())


def content(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    plain: dict[str, Any] = json.loads(result.content[0].text)
    return plain


def test_mcp_search_and_explain(faq: Path) -> None:
    found, why, tools = ask(
        make_server(faq),
        ("search", {"question": QUERY, "top": 2}),
        ("explain", {"question": QUERY, "id": "password"}),
    )
    assert tools == ["search", "explain"]
    hits = Collection.open(faq).search(QUERY, top=2)
    told = content(found)
    assert [one["id"] for one in told["answers"]] == [hit.id for hit in hits]
    assert told["answers"][0]["columns"] == {"url": "/password"}
    assert (told["known"], told["confident"]) == (hits.known, hits.confident)
    explained = content(why)
    assert explained["score"] == pytest.approx(hits[0].score, rel=1e-4)
    assert "password" in {one["query_word"] for one in explained["words"]}


def test_mcp_adds_only_where_it_may(faq: Path, tmp_path: Path) -> None:
    shutil.copytree(faq, tmp_path / "faq")
    new = {"questions": ["How do I bake bread?", "baking"], "answer": "Use an oven.", "id": "oven"}
    refused, _ = ask(make_server(tmp_path / "faq"), ("add", new))
    assert refused.is_error
    added, found, tools = ask(
        make_server(tmp_path / "faq", writable=True), ("add", new), ("search", {"question": "baking bread"})
    )
    assert tools == ["search", "explain", "add"]
    assert content(added) == {"new": 1, "replaced": 0}
    assert content(found)["answers"][0]["id"] == "oven"
    assert Collection.open(tmp_path / "faq")["oven"].questions == ("How do I bake bread?", "baking")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search", {"question": ""}),
        ("search", {"question": "a " * 60}),
        ("search", {"question": "a", "top": 10_000}),
        ("search", {"question": "a", "top": 0}),
        ("search", {}),
        ("explain", {"question": "a", "id": "x" * 1000}),
        ("add", {"questions": ["a"] * 101, "answer": "b"}),
        ("add", {"questions": [], "answer": "b"}),
        ("add", {"questions": ["a"], "answer": " "}),
    ],
)
def test_mcp_refuses_what_is_too_much_in_words(faq: Path, tmp_path: Path, name: str, arguments: dict[str, Any]) -> None:
    shutil.copytree(faq, tmp_path / "faq")
    result, _ = ask(make_server(tmp_path / "faq", writable=True, limits=Limits(words=50)), (name, arguments))
    assert result.is_error
    assert "Traceback" not in result.content[0].text
    assert str(tmp_path) not in result.content[0].text


@pytest.mark.slow
def test_mcp_explains_within_bounds(faq: Path, tmp_path: Path) -> None:
    """A question and an answer of 2,000 words each, both legal, took a minute and a gigabyte."""
    shutil.copytree(faq, tmp_path / "faq")
    long = "the password " * 950
    _, why, none, _ = ask(
        make_server(tmp_path / "faq", writable=True),
        ("add", {"questions": ["long"], "answer": long, "id": "long"}),
        ("explain", {"question": long, "id": "long"}),
        ("explain", {"question": QUERY, "id": "none"}),
    )
    assert why.is_error
    assert "too many to explain" in why.content[0].text
    assert none.is_error
    assert "no answer has the id" in none.content[0].text


@pytest.mark.slow
@pytest.mark.parametrize("writable", [False, True])
def test_mcp_goes_on_after_lines_that_are_no_messages(faq: Path, tmp_path: Path, writable: bool) -> None:
    """Half lines, no JSON, deep JSON, wrong kinds: what can be answered is, the rest is passed over, and it ends."""
    shutil.copytree(faq, tmp_path / "faq")
    command = [sys.executable, "-m", "matchloom", "mcp", str(tmp_path / "faq"), *(["--writable"] if writable else [])]
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    odd: list[bytes] = [
        b"",
        b"hello",
        b"\xff\xfe\xfa",
        b"[" * 100_000,
        b"[]",
        b"null",
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":5,"method":"ping","params":' + b'{"a":' * 3000 + b"1" + b"}" * 3001,
        b'{"jsonrpc":"2.0","id":null,"method":null}',
        b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"search","arguments":{"question":"\\ud83d"}}}',
        b"x" * 5_000_000,
        b'{"jsonrpc":"2.0","id":50,"method":"tools/list","params":"' + b"x" * 5_000_000 + b'"}',
    ]
    calls: list[Any] = [
        {"question": 1},
        {"question": "a", "top": 10**400},
        {"question": "a " * 3000},
        {"question": "a" * 60_000},
        {"question": ["a"]},
        {},
        {"question": QUERY},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}).encode()]
    lines += [b'{"jsonrpc":"2.0","method":"notifications/initialized"}', *odd]
    for n, arguments in enumerate(calls):
        params = {"name": "search", "arguments": arguments}
        lines.append(json.dumps({"jsonrpc": "2.0", "id": 100 + n, "method": "tools/call", "params": params}).encode())
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b"\n".join(lines) + b"\n")
        server.stdin.flush()
        told: dict[int, Any] = {}
        while 100 + len(calls) - 1 not in told:
            line = json.loads(server.stdout.readline())
            told[line.get("id")] = line
        server.stdin.write(b'{"jsonrpc":"2.0","id":9')
        server.stdin.close()
        assert server.wait(60) == 0
    assert "2,000,000 bytes" in json.dumps(told[50]["error"]), "a line that is too long is told by its id"
    results = [told[100 + n]["result"] for n in range(len(calls)) if 100 + n in told]
    assert [one["isError"] for one in results] == [True] * (len(results) - 1) + [False]
    assert all("Traceback" not in one["content"][0]["text"] for one in results)


def test_mcp_over_pipes(faq: Path) -> None:
    async def work() -> tuple[list[str], Any]:
        started = StdioServerParameters(
            command=sys.executable, args=["-m", "matchloom", "mcp", str(faq)], env={**os.environ}
        )
        async with Client(stdio_client(started)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            return tools, await client.call_tool("search", {"question": QUERY})

    tools, found = asyncio.run(work())
    assert tools == ["search", "explain"]
    assert content(found)["answers"][0]["id"] == "password"


def test_mcp_over_http(faq: Path) -> None:
    import httpx
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    server = uvicorn.Server(uvicorn.Config(http_app(make_server(faq), "127.0.0.1"), log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        found, tools = ask(url, ("search", {"question": QUERY}))
        assert tools == ["search", "explain"]
        assert content(found)["answers"][0]["id"] == "password"
        headers = {"accept": "application/json, text/event-stream"}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        for name in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
            assert httpx.post(url, json=asked, headers={**headers, **name}).status_code in (403, 421)
        assert httpx.post(url, content=b"{" * 3_000_000, headers=headers).status_code == 413
    finally:
        server.should_exit = True
        thread.join()


def test_mcp_of_a_wrong_folder_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", str(tmp_path / "none")]) == 2
    out, told = capsys.readouterr()
    assert (out, len(told.strip().splitlines())) == ("", 1)
