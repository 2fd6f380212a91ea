"""The serving process: signals, kill -9 under load, and what it says when it cannot start."""

from __future__ import annotations

import shutil
import signal
import socket
import threading
from pathlib import Path

import httpx
import pytest

from matchloom.search.lance.collection import LanceCollection
from matchloom.service.server import bind, is_loopback
from tests.cli.conftest import Run, error_of, run  # noqa: F401
from tests.refusing import refused
from tests.service.child import Serving, post
from tests.service.making import make_matcher

PAIR = {"query": "reset my password", "text": "choose Reset password"}


@pytest.mark.slow
def test_kill_9_under_load_then_reload_then_a_graceful_end(served: Path, tmp_path: Path) -> None:
    for name in ("tickets", "mv"):
        shutil.copytree(served / name, tmp_path / name)
    arguments = [tmp_path / "tickets", tmp_path / "mv", "--writable", "--feedback", tmp_path / "thumbs.jsonl"]
    serving = Serving(arguments, tmp_path / "log")
    confirmed: list[str] = []
    thumbs: list[str] = []
    enough = threading.Event()

    def write() -> None:
        for n in range(10_000):
            pair = {"query": f"question {n}", "text": f"answer {n}", "text_id": f"new{n}"}
            try:
                post(f"{serving.url}/v1/archives/tickets/pairs", {"pairs": [pair]}).raise_for_status()
                confirmed.append(f"new{n}")
                thumb = {"question": f"question {n}", "text": f"answer {n}", "id": f"new{n}", "label": 1}
                post(f"{serving.url}/v1/feedback", thumb).raise_for_status()
                thumbs.append(f"question {n}")
            except httpx.TransportError:
                return
            if n == 4:
                enough.set()

    def search() -> None:
        try:
            while True:
                post(f"{serving.url}/v1/search", {"question": "question", "top": 3}).raise_for_status()
        except httpx.TransportError:
            return

    threads = [threading.Thread(target=write), *(threading.Thread(target=search) for _ in range(3))]
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    assert serving.end(signal.SIGKILL) == -signal.SIGKILL
    for thread in threads:
        thread.join()
    index = LanceCollection.open(tmp_path / "tickets")
    assert len(confirmed) >= 5
    assert index.unknown(confirmed) == [], "what was confirmed is there"
    assert LanceCollection.check(tmp_path / "tickets")
    kept = (tmp_path / "thumbs.jsonl").read_text(encoding="utf-8")
    assert all(f'"{question}"' in kept for question in thumbs)

    serving = Serving(arguments, tmp_path / "log")
    make_matcher(seed=7).save(tmp_path / "mv")
    serving.send(signal.SIGHUP)
    serving.wait_for("reloaded")
    expected = make_matcher(seed=7).score(PAIR["query"], PAIR["text"])
    answers: list[float] = []

    def ask() -> None:
        try:
            response = post(f"{serving.url}/v1/score", {"system": "mv", "pairs": [PAIR] * 500})
        except httpx.TransportError:
            return  # it came too late to be accepted
        answers.extend(response.json()["scores"])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(serving.lines("request")) < 1:  # the first is answered, and others are on their way
        pass
    assert serving.end(signal.SIGTERM) == -signal.SIGTERM
    for thread in threads:
        thread.join()
    accepted = [line for line in serving.lines("request") if line["path"] == "/v1/score"]
    assert all(line["status"] == 200 for line in accepted)
    assert answers == [expected] * 500 * len(accepted), "everything that was accepted was answered"
    assert serving.lines("stopped")


def test_where_it_may_listen(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.delenv("MATCHLOOM_API_KEY", raising=False)
    assert "needs a key" in error_of(run("serve", tmp_path, "--host", "0.0.0.0"))
    assert "nothing to serve" in error_of(run("serve"))
    assert "cannot be the name" in error_of(run("serve", "bm25=x"))
    monkeypatch.setenv("MATCHLOOM_API_KEY", "short")
    assert "16" in error_of(run("serve", tmp_path))
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8")] == [True] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", "")] == [False] * 5
    with bind("127.0.0.1", 0) as held:
        assert held.proto == socket.IPPROTO_TCP, "or answers wait for 40 milliseconds"
    with bind("127.0.0.1", 0) as held, refused("busy", "--port"):
        bind("127.0.0.1", held.getsockname()[1])
