"""Attacks on a service that runs in a process of its own: what each costs others is measured beside an idle one.

    python -m tests.hostile.service --tries 600 --seconds 8 --results FILE.json     the long round

Every attack is many requests that break one promise each if it can be broken. While it goes on somebody else asks
/health and a small question: both must be answered, and right. Then memory is read, and SIGTERM must end the process.
Times are told and not judged, but for the end of the process: a crowded machine is slow to everybody.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from matchloom.search.collection import Collection
from tests.service.making import PAIRS

_QUESTION = "I forgot my password"
_PATHS = (
    "/v1/rank",
    "/v1/score",
    "/v1/search",
    "/v1/explain",
    "/v1/feedback",
    "/v1/reload",
    "/v1/rerank",
    "/v2/rerank",
    "/rerank",
    "/v1/embeddings",
    "/v1/archives/faq/pairs",
    "/v1/archives/faq/delete",
    "/v1/collections/faq/remove",
)


class Service:
    """`matchloom serve` of a small collection."""

    def __init__(self, folder: Path, *options: str) -> None:
        if not (folder / "faq").exists():
            Collection.fit(PAIRS).save(folder / "faq")
        self.log = folder / "log"
        command = [
            sys.executable,
            "-m",
            "matchloom",
            "serve",
            "faq",
            "--port",
            "0",
            "--writable",
            "--no-refit",
            *options,
        ]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        for _ in range(4800):
            line = next((one for one in self._lines() if one.startswith("Ready: ")), None)
            if line is not None:
                break
            assert self.process.poll() is None, self.log.read_text("utf-8", "replace")
            time.sleep(0.05)
        assert line is not None, "it was not ready in time"
        self.url = line.removeprefix("Ready: ").rstrip("/")
        self.port = int(self.url.rpartition(":")[2])

    def _lines(self) -> list[str]:
        return self.log.read_text("utf-8", "replace").splitlines()

    @property
    def memory(self) -> int:
        """Bytes that the process has in memory."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
        return 0

    def end(self) -> float:
        """SIGTERM; the seconds until it has ended."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(90)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return time.monotonic() - start

    def broken(self) -> list[str]:
        """What the log has that none may have: answers 5xx but 503, tracebacks, lines that are no JSON."""
        found = []
        for line in self._lines():
            if line.startswith(("Loading", "Ready", "matchloom: warning")) or not line.strip():
                continue
            try:
                told = json.loads(line)
            except ValueError:
                found.append(line[:300])
                continue
            if told["event"] in ("failed", "traceback") or (told.get("status") or 0) in (500, 501, 502, 504):
                found.append(line[:600])
        return found


# ---- attacks: each a function of a service, a source of draws and a flag that ends it; it gives what it tried


Attack = Callable[[Service, random.Random, threading.Event], Iterator[str]]


def _raw(service: Service, sent: bytes, wait: float = 5.0) -> str:
    """Send bytes; the status of the answer, or what became of the connection."""
    try:
        with socket.create_connection(("127.0.0.1", service.port), timeout=wait) as made:
            made.sendall(sent)
            found = made.recv(65536)
    except (ConnectionError, TimeoutError) as error:
        return type(error).__name__
    return found[9:12].decode("latin-1") if found.startswith(b"HTTP/1.1 ") else "closed"


def _post(path: str, body: bytes, *more: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *more]
    return "\r\n".join([*lines, "Connection: close", f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body


def http_tricks(service: Service, rng: random.Random, ended: threading.Event) -> Iterator[str]:
    """Heads that lie, cut off, overflow, smuggle."""
    hosts = ("[", "[::1", "localhost:99999999", "evil.example", "\x00", "localhost\tx", "a" * 9000, "", "[]", "::")
    while not ended.is_set():
        method = rng.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PRI", "G\x00T", "PATCH"])
        path = rng.choice(
            [*_PATHS, "/health", "/", "*", "//", "/static/..%2f..%2fetc/passwd", "/%00", "/v1/%ff", "/?" + "a" * 9000]
        )
        version = rng.choice(["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9", "http/1.1", ""])
        headers = [f"Host: {rng.choice(['localhost'] * 6 + list(hosts))}"]
        for _ in range(rng.randrange(4)):
            headers.append(
                rng.choice(
                    [
                        "Content-Length: 5",
                        "Content-Length: -1",
                        "Content-Length: 9" + "9" * rng.randrange(30),
                        "Content-Length: 1e3",
                        "Transfer-Encoding: chunked",
                        "Transfer-Encoding: gzip, chunked",
                        "Transfer-Encoding: identity",
                        "Expect: 100-continue",
                        "Upgrade: h2c\r\nConnection: Upgrade",
                        "Upgrade: websocket\r\nConnection: upgrade",
                        "Origin: https://evil.example",
                        "Origin: null",
                        "Origin: http://[",
                        "Content-Type: application/json; charset=utf-7",
                        "Content-Encoding: gzip",
                        "Range: bytes=0-9999999999",
                        "X-Request-Id: " + "\u00e9" * 9,
                        "If-None-Match: *",
                        "X: " + "b" * rng.choice([10, 20_000, 70_000]),
                        "Authorization: Bearer " + "x" * 5000,
                        " folded: 1",
                        "No colon",
                        "Cookie: " + "a=b; " * 500,
                        "X-Forwarded-For: 127.0.0.1",
                        "Host: second",
                    ]
                )
            )
        body = rng.choice(
            [
                b"",
                b"hello",
                b"0\r\n\r\n",
                b"5\r\nhello\r\n0\r\n\r\n",
                b"ffffffffffffffff\r\n",
                b"zz\r\n",
                b"{}",
                b"\xff" * 50,
            ]
        )
        sent = f"{method} {path} {version}\r\n".encode("latin-1", "replace") + "\r\n".join(headers).encode(
            "latin-1", "replace"
        )
        sent += rng.choice([b"\r\n\r\n", b"\n\n", b"\r\r", b"", b"\r\n\r\n\r\n"]) + body
        yield _raw(service, sent, wait=0.4)


def bodies(service: Service, rng: random.Random, ended: threading.Event) -> Iterator[str]:
    """Two megabytes that are a million values, deep, or no JSON."""
    big = 1_900_000
    pieces = (
        "0,",
        "[],",
        "{},",
        '"",',
        '{"":0},',
        "1e9,",
        "null,",
        '["a","b"],',
        '{"query":"a","text":"b"},',
        "[[",
        '{"a":',
    )
    while not ended.is_set():
        piece, name = (
            rng.choice(pieces),
            rng.choice(["candidates", "pairs", "questions", "ids", "where", "documents", "texts", "input"]),
        )
        body = f'{{"query":"a","{name}":[' + piece * (big // len(piece)) + rng.choice(["0]}", "", '"', "]}"])
        if rng.random() < 0.3:
            body = rng.choice(
                [
                    '{"top":' + "9" * big + "}",
                    '{"query":"' + "\\u0041" * (big // 6) + '"}',
                    '{"query":"' + "a " * (big // 2) + '"}',
                    "{" + ",".join(f'"{n:x}":0' for n in range(100_000)) + "}",
                    '{"query":"' + "\\ud83d" * (big // 6) + '"}',
                    " " * big,
                ]
            )
        yield _raw(service, _post(rng.choice(_PATHS), body.encode()), wait=20)


def largest(service: Service, rng: random.Random, ended: threading.Event) -> Iterator[str]:
    """The largest legal requests that there are."""
    texts = ["the password of my account " * 70 for _ in range(1000)]
    long = "the password of my account " * 380
    while not ended.is_set():
        given = rng.choice(
            [
                ("/v1/rank", {"query": long, "candidates": texts, "system": rng.choice(["bm25", "faq"])}),
                ("/v1/score", {"pairs": [{"query": "the password", "text": text} for text in texts]}),
                ("/v1/search", {"questions": [f"{n} the password of my account" for n in range(1000)], "top": 100}),
                ("/v1/search", {"questions": ["the the " * 900] * 100, "top": 100, "explain": True}),
                ("/v1/search", {"question": "password the my " * 600, "top": 100, "explain": True}),
                ("/v1/explain", {"query": "the password " * 250, "text": "the password " * 250}),
                ("/v1/rerank", {"query": long, "documents": texts, "explain": True}),
            ]
        )
        try:
            yield str(httpx.post(f"{service.url}{given[0]}", json=given[1], timeout=60).status_code)
        except httpx.HTTPError:
            time.sleep(0.1)


def idle(service: Service, rng: random.Random, ended: threading.Event) -> Iterator[str]:
    """Connections that say nothing, or half of something."""
    head = _post("/v1/rank", b" " * 1_500_000)[:-1_500_000]
    held: list[socket.socket] = []
    try:
        while not ended.is_set():
            try:
                made = socket.create_connection(("127.0.0.1", service.port), timeout=5)
            except OSError:
                time.sleep(0.1)
                continue
            held.append(made)
            with suppress(OSError):
                made.sendall(
                    rng.choice([b"", b"GET /hea", head, head + b" " * 300_000, b"POST / HTTP/1.1\r\nHost: a\r\nX: "])
                )
            yield "held"
            if len(held) > 700:
                held.pop(rng.randrange(len(held))).close()
            time.sleep(0.002)
    finally:
        for made in held:
            made.close()


def writes_and_reloads(service: Service, rng: random.Random, ended: threading.Event) -> Iterator[str]:
    """Adds, removes, puts, thumbs and reloads, many at a time."""
    while not ended.is_set():
        name = f"new{rng.randrange(500)}"
        pair = {"query": f"how do I {name}", "text": f"like {name}", "text_id": name}
        method, path, body = rng.choice(
            [
                ("POST", "/v1/archives/faq/pairs", {"pairs": [pair]}),
                ("POST", "/v1/archives/faq/delete", {"ids": [name, "none"]}),
                (
                    "PUT",
                    "/v1/collections/faq/entries",
                    {"entries": [{"id": name, "text": f"so {name}", "questions": ["a"]}]},
                ),
                ("POST", "/v1/reload", {}),
                ("POST", "/v1/feedback", {"question": "so?", "id": "password", "label": rng.randrange(2)}),
                ("POST", "/v1/feedback", {"question": "so?", "id": name, "text": "Send 500 EUR", "label": 1}),
            ]
        )
        try:
            yield str(httpx.request(method, f"{service.url}{path}", json=body, timeout=60).status_code)
        except httpx.HTTPError:
            time.sleep(0.1)


def owners(service: Service, rng: random.Random, ended: threading.Event) -> Iterator[str]:
    """What a key of an owner can ask for at its largest: tables, imports, lists of wrong items, descriptions."""
    rows = "".join(f"question {n} of w{n},answer {n}\n" for n in range(30_000))
    wide = [{"id": f"e{n}", "text": "t", "columns": {f"c{i}": "v" for i in range(90)}} for n in range(1000)]
    home = "/v1/collections/faq"
    while not ended.is_set():
        method, path, body = rng.choice(
            [
                ("GET", "/openapi.json", None),
                ("GET", "/metrics", None),
                ("GET", f"{home}/entries?search=a+b&sort=-text&limit=200", None),
                ("GET", f"{home}/inbox", None),
                ("GET", f"{home}/quality", None),
                ("GET", f"{home}/audit?limit=1000", None),
                ("GET", f"{home}/export", None),
                ("POST", f"{home}/import", {"content": "question,answer\n" + rows, "dry_run": True}),
                ("POST", f"{home}/import", {"content": "question,answer\n" + '"' * 900_000, "dry_run": True}),
                ("PUT", f"{home}/entries", {"entries": [{"questions": [1] * 90}] * 1000}),
                ("PUT", f"{home}/entries", {"entries": wide, "new": True}),
                ("POST", "/v1/score", {"pairs": [{f"x{n}": 0 for n in range(90)}] * 1000}),
                (
                    "POST",
                    "/v1/rank",
                    {"query": "the password " * 40, "candidates": ["a b " * 150] * 900, "explain": True},
                ),
                ("POST", "/v1/rerank", {"query": "a", "documents": [{"x": "y"}] * 1000, "rank_fields": ["x"] * 1000}),
                ("POST", "/v1/explain", {"query": "the password " * 250, "text": "the a " * 250, "form": "html"}),
            ]
        )
        try:
            yield str(httpx.request(method, f"{service.url}{path}", json=body, timeout=60).status_code)
        except httpx.HTTPError:
            time.sleep(0.1)


ATTACKS: dict[str, tuple[Attack, int]] = {
    "HTTP tricks": (http_tricks, 4),
    "bodies": (bodies, 4),
    "largest requests": (largest, 4),
    "idle connections and half bodies": (idle, 2),
    "writes and reloads": (writes_and_reloads, 8),
    "an owner's largest requests": (owners, 4),
}


class _Other:
    """Somebody else who asks meanwhile."""

    def __init__(self, service: Service, expected: list[str]) -> None:
        self._service, self._expected = service, expected
        self.health: list[float] = []
        self.small: list[float] = []
        self.wrong: Counter[str] = Counter()

    def run(self, ended: Any) -> None:
        """Ask until it is over."""
        while not ended.is_set():
            for times, ask in ((self.health, self._health), (self.small, self._small)):
                start = time.perf_counter()
                told = ask()
                times.append(time.perf_counter() - start)
                if told:
                    self.wrong[told] += 1
            time.sleep(0.02)

    def _asked(self, method: str, path: str, body: str | None = None) -> tuple[int, Any]:
        """On a connection of its own: who is new must get in."""
        made = HTTPConnection("127.0.0.1", self._service.port, timeout=60)
        try:
            made.request(method, path, body, {"content-type": "application/json"} if body else {})
            response = made.getresponse()
            return response.status, json.loads(response.read())
        finally:
            made.close()

    def _health(self) -> str:
        try:
            status, _ = self._asked("GET", "/health")
            return "" if status == 200 else f"/health {status}"
        except (OSError, HTTPException) as error:
            return f"/health {type(error).__name__}"

    def _small(self) -> str:
        try:
            status, told = self._asked("POST", "/v1/search", json.dumps({"question": _QUESTION, "top": 1}))
            if status != 200:
                return f"/v1/search {status}"
            found = [one["id"] for one in told["answers"]]
            return "" if found == self._expected else f"/v1/search answered {found}"
        except (OSError, HTTPException) as error:
            return f"/v1/search {type(error).__name__}"


@contextmanager
def _while(other: _Other) -> Iterator[None]:
    """It asks in a process of its own, so that it does not wait for the attackers' own work."""
    fork = multiprocessing.get_context("fork")
    ended, told = fork.Event(), fork.SimpleQueue()

    def run() -> None:
        other.run(ended)
        told.put((other.health, other.small, other.wrong))

    process = fork.Process(target=run, daemon=True)
    process.start()
    try:
        yield
    finally:
        ended.set()
        other.health, other.small, other.wrong = told.get()
        process.join()


def attacked(folder: Path, name: str, seed: int, tries: int, seconds: float, *options: str) -> dict[str, Any]:
    """One attack on a service of its own: what was tried, what broke, and what it cost others."""
    attack, clients = ATTACKS[name]
    service = Service(folder, *options)
    try:
        expected = ["password"]
        calm = _Other(service, expected)
        with _while(calm):
            time.sleep(min(2.0, seconds))
        before, cpu = service.memory, _cpu(service)
        ended, stopping = threading.Event(), threading.Event()
        tried, lock = Counter[str](), threading.Lock()

        def work(number: int) -> None:
            for told in attack(service, random.Random(f"{name} {seed} {number}"), ended):
                with lock:
                    tried[told] += not stopping.is_set()

        other = _Other(service, expected)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(clients)]
        with _while(other):
            start = time.monotonic()
            for thread in threads:
                thread.start()
            while _goes_on(time.monotonic() - start, seconds, sum(tried.values()), tries):
                time.sleep(0.1)
            at_end = service.memory
        took = time.monotonic() - start
        cost = _cpu(service) - cpu
        stopping.set()
        end = service.end()  # while the attackers go on
        ended.set()
        for thread in threads:
            thread.join(90)
    finally:
        if service.process.poll() is None:
            service.process.kill()
    statuses = Counter({k: n for k, n in tried.items() if k.isdigit() and k.startswith("5") and k != "503"})
    failures = (
        service.broken()
        + [f"{n} x {told}" for told, n in other.wrong.items()]
        + [f"{n} answers {k}" for k, n in statuses.items()]
    )
    if service.process.returncode not in (0, -signal.SIGTERM) or end > 30:  # uvicorn ends as the signal would have
        failures.append(f"SIGTERM: exit {service.process.returncode} after {end:.1f} s")
    return {
        "attack": name,
        "tries": sum(tried.values()),
        "answers": dict(tried.most_common()),
        "failures": failures[:20],
        "health_p50_p99_idle_ms": percentiles(calm.health),
        "health_p50_p99_ms": percentiles(other.health),
        "small_search_p50_p99_idle_ms": percentiles(calm.small),
        "small_search_p50_p99_ms": percentiles(other.small),
        "asked_meanwhile": len(other.health) + len(other.small),
        "memory_before_mb": before // 1_000_000,
        "memory_after_mb": at_end // 1_000_000,
        "cpu_seconds": round(cost, 1),
        "seconds": round(took, 1),
        "sigterm_to_exit_s": round(end, 2),
        "load": round(os.getloadavg()[0], 1),
    }


def _goes_on(took: float, seconds: float, tried: int, tries: int) -> bool:
    return took < seconds or (tried < tries and took < 10 * seconds)


def _cpu(service: Service) -> float:
    fields = Path(f"/proc/{service.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentiles(times: list[float]) -> list[float]:
    """The median and the 99th, in milliseconds."""
    return [round(1000 * float(value), 1) for value in np.percentile(times, [50, 99])] if times else []


def main() -> int:
    """The long round; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tries", type=int, default=600, help="of each attack, at least")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each attack, at least")
    parser.add_argument("--only", action="append", help="an attack, or how its name begins")
    parser.add_argument("--results", type=Path, help="where to write the figures, as JSON")
    given = parser.parse_args()
    rows = []
    for name in ATTACKS:
        if given.only and not any(name.startswith(one) for one in given.only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows.append(attacked(Path(folder), name, given.seed, given.tries, given.seconds))
        print(json.dumps(rows[-1]), flush=True)
        if given.results is not None:
            given.results.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 1 if any(row["failures"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
