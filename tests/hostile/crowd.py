"""Two hundred clients for minutes, with writes, judgements, reloads and two attackers: answers stay right, memory flat.

    python -m tests.hostile.crowd --seconds 300 --results FILE.json

Clients ask known questions, each on a connection of its own that it keeps, and look at the first answer. A 503 is
counted, and asked again. What is written is asked for as soon as it is confirmed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from tests.hostile.service import ATTACKS, Service, _Other, _while, percentiles
from tests.service.making import PAIRS

KNOWN = [(pair.query, pair.text_id) for pair in PAIRS if pair.query.isascii() and "<" not in pair.query]


async def _client(url: str, number: int, end: float, told: Counter[str], times: list[float]) -> None:
    rng = random.Random(number)
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        while time.monotonic() < end:
            question, expected = rng.choice(KNOWN)
            start = time.perf_counter()
            try:
                response = await http.post("/v1/search", json={"question": question, "top": 1})
            except httpx.HTTPError as error:
                told[f"dropped: {type(error).__name__}"] += 1
                continue
            times.append(time.perf_counter() - start)
            if response.status_code != 200:
                told[f"refused: {response.status_code}"] += 1
            else:
                right = [one["id"] for one in response.json()["answers"]] == [expected]
                told["right" if right else "wrong"] += 1
            await asyncio.sleep(rng.uniform(0.2, 0.6))


async def _writer(url: str, end: float, told: Counter[str]) -> None:
    """Puts, asks for what it put, judges it, removes it, reloads now and then."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        n = 0
        while time.monotonic() < end:
            n += 1
            name, question = f"new{n}", f"how do I weave pattern number{n}"
            put = {"entries": [{"id": name, "text": f"By rule {n}.", "questions": [question]}]}
            calls: list[tuple[str, str, Any]] = [
                ("PUT", "/v1/collections/faq/entries", put),
                ("POST", "/v1/search", {"question": question, "top": 1}),
                ("POST", "/v1/feedback", {"question": question, "id": name, "label": n % 2}),
                ("POST", "/v1/collections/faq/remove", {"ids": [name]}),
            ]
            if n % 10 == 0:
                calls.append(("POST", "/v1/reload", {}))
            for method, path, body in calls:
                try:
                    response = await http.request(method, path, json=body)
                except httpx.HTTPError as error:
                    told[f"writer dropped: {type(error).__name__}"] += 1
                    continue
                told[f"{method} {path.rpartition('/')[2]} {response.status_code}"] += 1
                if path == "/v1/search" and response.status_code == 200:
                    found = [one["id"] for one in response.json()["answers"]]
                    told["written and found" if found == [name] else "written and not found"] += 1
            await asyncio.sleep(0.3)


def crowd(folder: Path, clients: int, seconds: float, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """What became of everybody."""
    service = Service(folder, *options)
    told, times = Counter[str](), list[float]()
    memory = [service.memory // 1_000_000]
    ended = threading.Event()
    tried = Counter[str]()

    def attack(name: str) -> None:
        for one in ATTACKS[name][0](service, random.Random(name), ended):
            tried[f"{name}: {one}"] += 1

    async def ask() -> None:
        end = time.monotonic() + seconds
        asking = [_client(service.url, n, end, told, times) for n in range(clients)]
        await asyncio.gather(_writer(service.url, end, told), *asking)

    def look() -> None:
        while not ended.wait(max(1.0, seconds / 10)):
            memory.append(service.memory // 1_000_000)

    threads = [
        threading.Thread(target=attack, args=(name,)) for name in ("largest requests", "an owner's largest requests")
    ]
    threads.append(threading.Thread(target=look))
    other = _Other(service, ["password"])
    try:
        with _while(other):
            for thread in threads:
                thread.start()
            asyncio.run(ask())
        ended.set()
        took = service.end()
    finally:
        ended.set()
        if service.process.poll() is None:
            service.process.kill()
    for thread in threads:
        thread.join(90)
    return {
        "clients": clients,
        "seconds": seconds,
        "answers": dict(told.most_common()),
        "attackers": dict(tried.most_common()),
        "search_p50_p99_ms": percentiles(times),
        "health_p50_p99_ms": percentiles(other.health),
        "others": dict(other.wrong),
        "memory_mb": memory,
        "sigterm_to_exit_s": round(took, 2),
        "log": service.broken()[:20],
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> int:
    """The long round; 1 if anybody was answered wrongly, or not at all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = crowd(Path(folder), given.clients, given.seconds)
    print(json.dumps(found))
    if given.results is not None:
        given.results.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 1 if failures(found) else 0


def failures(found: dict[str, Any]) -> list[str]:
    """What may not be."""
    bad = [
        name for name in found["answers"] if name.startswith(("wrong", "dropped", "writer dropped", "written and not"))
    ]
    return [*bad, *found["others"], *found["log"]]


if __name__ == "__main__":
    sys.exit(main())
