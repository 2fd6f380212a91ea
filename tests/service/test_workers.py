"""Several processes over the same folder: what one writes all find, a dead one is replaced, all end together."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
import pytest

from matchloom import Collection
from matchloom.service.server import bind
from matchloom.service.sharing import Counts, SharedSocket

slow = pytest.mark.slow


class Workers:
    """`matchloom serve --workers 2` in a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.log = folder / "log"
        command = [sys.executable, "-m", "matchloom", "serve", "faq", "--workers", "2", "--port", "0", *arguments]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, cwd=folder, stderr=log)

    def ready(self) -> str:
        """Its address, when all workers are ready."""
        found = until(lambda: next((line for line in self.lines() if line.startswith("Ready: ")), None))
        return str(found).removeprefix("Ready: ").rstrip("/")

    def lines(self) -> list[str]:
        """The log so far."""
        return self.log.read_text(encoding="utf-8").splitlines()

    def events(self, name: str) -> list[dict[str, Any]]:
        """What was logged of one kind."""
        found = [json.loads(line) for line in self.lines() if line.startswith("{")]
        return [one for one in found if one["event"] == name]

    def children(self) -> list[int]:
        """The workers; the resource tracker of multiprocessing is none."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        pids = [int(one) for task in tasks.iterdir() for one in (task / "children").read_text().split()]
        return [one for one in pids if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def until(found: Callable[[], Any]) -> Any:
    """What comes true within half a minute."""
    for _ in range(600):
        with suppress(OSError):
            if value := found():
                return value
        time.sleep(0.05)
    raise AssertionError("it does not come true")


@pytest.fixture
def workers(served: Path, tmp_path: Path) -> Iterator[Workers]:
    shutil.copytree(served / "faq", tmp_path / "faq")
    made = Workers(tmp_path, "--writable", "--feedback", "thumbs.jsonl")
    try:
        yield made
    finally:
        made.process.terminate()
        made.process.wait(60)


@slow
def test_what_one_writes_all_find(workers: Workers, tmp_path: Path) -> None:
    url = workers.ready()
    assert len(workers.children()) == 2

    def write(n: int) -> None:
        entry = {"id": f"new{n}", "text": f"answer {n}", "questions": [f"question quux{n}"]}
        httpx.put(f"{url}/v1/collections/faq/entries", json={"entries": [entry]}, timeout=30).raise_for_status()
        for _ in range(4):  # connections of their own, which any worker may accept
            found = httpx.post(f"{url}/v1/search", json={"question": f"quux{n}", "top": 1}, timeout=30).json()
            assert found["answers"][0]["id"] == f"new{n}", "confirmed, and found by whoever is asked"
        thumb = {"question": f"question {n}", "text": f"answer {n}", "label": 1}
        httpx.post(f"{url}/v1/feedback", json=thumb, timeout=30).raise_for_status()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(20)))
    assert len(Collection.open(tmp_path / "faq")) == 26
    thumbs = [json.loads(line) for line in (tmp_path / "thumbs.jsonl").read_text().splitlines()]
    assert sorted(one["question"] for one in thumbs) == sorted(f"question {n}" for n in range(20))
    httpx.post(f"{url}/v1/collections/faq/refit", timeout=30).raise_for_status()

    def refitted() -> bool:
        about = httpx.get(f"{url}/v1/collections/faq", timeout=30).json()
        return about["refit"]["state"] != "running" and about["refit"]["last"] is not None

    until(refitted)
    for _ in range(8):
        assert httpx.get(f"{url}/v1/collections/faq", timeout=30).json()["changed_since_fit"] == 0
    assert len(workers.events("refitted")) == 1


@slow
def test_a_worker_that_dies_is_replaced_and_a_reload_is_everyones(workers: Workers) -> None:
    url = workers.ready()
    first = workers.children()
    os.kill(first[0], signal.SIGKILL)
    until(lambda: len(workers.events("ready")) == 3)
    assert len(set(workers.children()) - set(first)) == 1
    workers.process.send_signal(signal.SIGHUP)
    until(lambda: len(workers.events("reloaded")) >= 2)
    httpx.post(f"{url}/v1/reload", json={}, timeout=30).raise_for_status()
    until(lambda: len(workers.events("reloaded")) >= 5)
    assert httpx.post(f"{url}/v1/search", json={"question": "parcel"}, timeout=30).status_code == 200
    workers.process.terminate()
    assert workers.process.wait(60) == 0
    assert len(workers.events("stopped")) >= 2


@slow
def test_workers_end_with_their_supervisor(workers: Workers) -> None:
    workers.ready()
    children = workers.children()
    workers.process.kill()
    workers.process.wait(60)
    until(lambda: not any(Path(f"/proc/{one}").exists() for one in children))


@slow
def test_what_cannot_be_read_ends_all(tmp_path: Path) -> None:
    made = Workers(tmp_path)
    assert made.process.wait(60) == 2
    assert made.lines()[-1].startswith("matchloom: error: faq is not a folder")


def test_a_worker_takes_one_connection_at_a_time() -> None:
    listening = bind("127.0.0.1", 0)
    shared = SharedSocket(listening.family, listening.type, listening.proto, fileno=listening.detach())
    shared.setblocking(False)
    with shared, socket.create_connection(shared.getsockname()), socket.create_connection(shared.getsockname()):
        taken = []
        for _ in range(2):
            taken.append(shared.accept()[0])
            with pytest.raises(BlockingIOError):  # another worker's turn
                shared.accept()
        for one in taken:
            one.close()


def test_a_connection_is_left_to_a_worker_that_has_fewer_for_a_moment() -> None:
    spawn = get_context("spawn")
    pids, connections = spawn.Array("i", [0, os.getpid()]), spawn.Array("i", 2, lock=False)
    counts = Counts(pids, connections)
    counts.join()
    assert list(pids) == [os.getpid(), os.getpid()], "the first place was nobody's"
    assert not counts.has_most()
    counts.change(1)
    assert counts.has_most()
    listening = bind("127.0.0.1", 0)
    shared = SharedSocket(listening.family, listening.type, listening.proto, fileno=listening.detach())
    shared.setblocking(False)
    shared.counts = counts
    with shared, socket.create_connection(shared.getsockname()):
        waits = 0
        while True:
            try:
                taken = shared.accept()[0]
                break
            except BlockingIOError:
                waits += 1
        assert 1 <= waits <= 20, "left to the other, and taken where that does not come"
        taken.close()
    connections[1] = 5
    assert not counts.has_most()


def test_the_place_of_a_dead_worker_is_taken() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    spawn = get_context("spawn")
    pids, connections = spawn.Array("i", [os.getppid(), dead.pid]), spawn.Array("i", [3, 7], lock=False)
    Counts(pids, connections).join()
    assert (list(pids), list(connections)) == ([os.getppid(), os.getpid()], [3, 0])
