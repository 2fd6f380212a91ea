"""Clients who ask while the desk writes and refits: no wrong answer, none dropped.

Run: python -m experiments.benchmarks.desk_load [--clients 200] [--seconds 30] [--out FILE]

The FAQ is docs/examples/shop.json, served by `matchloom serve --writable --workers 2`. Every client asks known
questions one after the other; meanwhile one owner puts, edits, undoes and removes entries of other ids, and refits.
An answer is wrong if a known question does not find its entry first, dropped if there is none (a 503, too).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from experiments import places
from experiments.reproduction.provenance import commit
from matchloom.basics.files import atomic_write
from matchloom.search.collection import Collection


async def client(
    url: str, asked: list[tuple[str, str]], start: int, end: float, seen: Counter[str], took: list[float]
) -> None:
    """One who asks until the time is over."""
    async with httpx.AsyncClient(base_url=url, timeout=30) as session:
        n = start
        while time.monotonic() < end:
            question, name = asked[n % len(asked)]
            n += 1
            begun = time.perf_counter()
            try:
                found = await session.post("/v1/search", json={"question": question, "top": 3})
            except httpx.HTTPError:
                seen["dropped"] += 1
                continue
            took.append(time.perf_counter() - begun)
            if found.status_code != 200:
                seen["dropped"] += 1
            else:
                answers = found.json()["answers"]
                seen["right" if answers and answers[0]["id"] == name else "wrong"] += 1


async def owner(url: str, end: float, done: Counter[str]) -> None:
    """One who changes what is not asked for, and refits."""
    path = "/v1/collections/faq"
    async with httpx.AsyncClient(base_url=url, timeout=60) as session:
        n = 0
        while time.monotonic() < end:
            n += 1
            entry = {"id": f"new-{n % 7}", "text": f"Zebra number {n}.", "questions": [f"zebra {n} xylophone"]}
            for name, method, where, body in (
                ("put", "PUT", "/entries", {"entries": [entry]}),
                ("undo", "POST", "/undo", {}),
                ("put", "PUT", "/entries", {"entries": [entry]}),
                ("remove", "POST", "/remove", {"ids": [f"new-{(n + 3) % 7}"]}),
                ("inbox", "GET", "/inbox", None),
            ):
                answer = (
                    await session.request(method, path + where, json=body)
                    if body is not None
                    else await session.get(path + where)
                )
                done[name if answer.status_code == 200 else f"{name} refused"] += 1
            state = (await session.get(path)).json()["refit"]["state"]
            if state != "running" and (await session.post(f"{path}/refit", json={})).status_code == 202:
                done["refit"] += 1
            await asyncio.sleep(0.2)


async def measured(url: str, asked: list[tuple[str, str]], clients: int, seconds: float) -> dict[str, Any]:
    """All of them at once."""
    end = time.monotonic() + seconds
    seen: Counter[str] = Counter()
    done: Counter[str] = Counter()
    took: list[float] = []
    await asyncio.gather(owner(url, end, done), *(client(url, asked, 7 * n, end, seen, took) for n in range(clients)))
    took.sort()
    return {
        "clients": clients,
        "seconds": seconds,
        "answers": {name: seen[name] for name in ("right", "wrong", "dropped")},
        "a second": round(len(took) / seconds),
        "p50_ms": round(1000 * took[len(took) // 2], 1),
        "p99_ms": round(1000 * took[int(0.99 * len(took))], 1),
        "owner": dict(done),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--out", type=Path, default=places.RESULTS / "desk_load.json")
    options = parser.parse_args()
    faq = Path(__file__).parents[2] / "docs" / "examples" / "shop.json"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = Collection.create(folder / "faq", faq, learn_weights=True)
        known = [
            (question, one)
            for one, own in zip(made.entries.ids, made.entries.questions, strict=True)
            for question in own
        ]
        first = made.search([question for question, _ in known], top=1)
        asked = [pair for pair, hits in zip(known, first, strict=True) if hits and hits[0].id == pair[1]]
        command = [sys.executable, "-m", "matchloom", "serve", "faq", "--writable", "--workers", "2", "--no-refit"]
        command += ["--port", "0", "--quiet", "--log-questions", "asked.jsonl", "--queue", "1000", "--timeout", "30"]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            try:
                url = next(line.split()[1].rstrip("/") for line in process.stderr if line.startswith("Ready: "))
                Thread(target=process.stderr.read, daemon=True).start()
                found = asyncio.run(measured(url, asked, options.clients, options.seconds))
            finally:
                process.terminate()
    result = {"commit": commit(), "data": "docs/examples/shop.json", "known questions": len(asked), **found}
    print(json.dumps(result, indent=1))
    with atomic_write(options.out) as file:
        file.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
