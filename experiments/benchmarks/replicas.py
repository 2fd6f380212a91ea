"""Replicas of a published collection: searches a second, one beside three; from publish to served; started cold.

    python -m experiments.benchmarks.replicas                            # a minute; a folder is the store
    MATCHLOOM_MOTO=.../bin/moto_server python -m experiments.benchmarks.replicas   # the same through an S3 server

The collection is CovidFAQ's, fitted. Every answer is compared with the library's own. Clients, replicas and the store
share this machine's cores with whatever else it does: "CPU ms" of the serving processes does not depend on that.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

from experiments import places
from experiments.benchmarks.collection_service import search_kind, write
from experiments.benchmarks.service import Server, Tally, load
from experiments.reproduction.provenance import commit
from matchloom import Collection
from matchloom.basics.files import atomic_write
from matchloom.publishing.publish import publish

RESULTS = places.RESULTS / "replicas.json"
REPLICAS, CLIENTS, POLL = 3, 8, 0.5


@contextmanager
def store_uri(folder: Path) -> Iterator[tuple[str, str]]:
    """Where to publish, and what that is."""
    moto = os.environ.get("MATCHLOOM_MOTO") or shutil.which("moto_server")
    if moto is None:
        yield str(folder / "store" / "faq"), "a folder"
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [moto, "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            with suppress(OSError):
                asked = urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")
                urllib.request.urlopen(asked).close()
                break
            time.sleep(0.1)
        yield (
            f"s3://a:b@bucket/faq?region=us-east-1&scheme=http&endpoint_override=127.0.0.1%3A{port}",
            "moto's S3 server",
        )
    finally:
        server.kill()
        server.wait()


def start(folder: Path, uri: str, number: int) -> Server:
    home = folder / f"replica{number}"
    home.mkdir(exist_ok=True)
    return Server(home, "", "--copies", "copies", "--poll", str(POLL), "--no-feedback", served=[f"faq={uri}"])


def loaded(servers: list[Server], kind: Any, seconds: float) -> dict[str, Any]:
    """As many clients for all replicas together."""

    async def run() -> tuple[Tally, float]:
        own = CLIENTS // len(servers)
        done = await asyncio.gather(*(load(one.port, [kind], own, seconds) for one in servers))
        whole = Tally()
        for tally, _ in done:
            whole.seconds += tally.seconds
            whole.wrong += tally.wrong
            whole.refused += tally.refused
            whole.dropped += tally.dropped
        return whole, max(elapsed for _, elapsed in done)

    cpu = sum(one.cpu() for one in servers)
    tally, elapsed = asyncio.run(run())
    made = len(tally.seconds) + len(kind.bodies) * len(servers)  # those that were compared first
    return {**tally.row(elapsed), "CPU ms": round(1000 * (sum(one.cpu() for one in servers) - cpu) / made, 2)}


def version_of(server: Server) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/v1/systems") as answer:
        return int(json.load(answer)["systems"][0]["replica"]["version"])


def measured(folder: Path, seconds: float, rounds: int) -> dict[str, Any]:
    questions = write(folder)
    kind = search_kind(folder, questions)
    rows: dict[str, Any] = {}
    with store_uri(folder) as (uri, name):
        began = time.perf_counter()
        done = publish(folder / "faq", uri)
        rows |= {"store": name, "bytes": done.bytes, "publish, seconds": round(time.perf_counter() - began, 3)}
        first = start(folder, uri, 0)
        rows["cold replica, seconds to ready"] = round(first.seconds, 2)
        rows["cold replica, CPU seconds"] = round(first.cpu(), 2)
        servers = [first]
        try:
            rows["one replica"] = loaded(servers, kind, seconds)
            servers += [start(folder, uri, n) for n in range(1, REPLICAS)]
            rows["three replicas"] = loaded(servers, kind, seconds)
            faq, until_served = Collection.open(folder / "faq"), []
            for n in range(rounds):
                faq.add([(f"where is item{n}?", f"Item {n} is on shelf {n}.")])
                began = time.perf_counter()
                version = publish(folder / "faq", uri).version
                while any(version_of(one) < version for one in servers):
                    time.sleep(0.02)
                until_served.append(time.perf_counter() - began)
            rows["publish to served by all, seconds"] = {
                "median": round(median(until_served), 2),
                "most": round(max(until_served), 2),
                "poll": POLL,
            }
        finally:
            for one in servers:
                one.stop()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, help="of each load")
    parser.add_argument("--rounds", type=int, default=10, help="publications that are followed")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        rows = measured(Path(home), given.seconds, given.rounds)
    rows = {"commit": commit(), "load": round(os.getloadavg()[0], 1), **rows}
    print(json.dumps(rows, indent=2))
    with atomic_write(given.out) as file:
        file.write(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
