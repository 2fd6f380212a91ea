"""A collection of CovidFAQ's size behind the service: searches a second, and a long load while it is changed.

    python -m experiments.benchmarks.collection_service               # under a minute; prints, and keeps as JSON
    python -m experiments.benchmarks.collection_service --load 300    # and 200 clients for five minutes, with writes

One and two workers, clients that ask again as soon as they are answered; each answer is compared with the library's
own, byte by byte with one that was. Clients share the cores with the service, and both share them with whatever else
the machine does: "CPU ms" of the serving processes for each answer does not depend on that. In the long load entries
are put and removed, and as soon as a refit has ended the next one begins; a known question must find its answer whoever
is asked, and a new entry must be found as soon as it is confirmed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from experiments import places
from experiments.benchmarks.service import RequestKind, Server, Tally, answer, request, timed
from experiments.reproduction.provenance import commit
from matchloom import Collection, read_pairs
from matchloom.basics.files import atomic_write

RESULTS = places.RESULTS / "collection_service.json"
CLIENTS, WORKERS = (1, 16, 64), (1, 2)
LONG_CLIENTS = 200


def write(folder: Path) -> list[str]:
    """The collection `faq`, learnt from CovidFAQ's entries and training questions; its test questions."""
    home = places.DATA / "faq"
    known = [pair for name in ("covid_faq", "covid_train") for pair in read_pairs(home / f"{name}.tsv")]
    Collection.fit(known).save(folder / "faq")
    return list(dict.fromkeys(pair.query for pair in read_pairs(home / "covid_test.tsv")))[:200]


def search_kind(folder: Path, questions: list[str]) -> RequestKind:
    """Searches, with the library's own answers."""
    faq = Collection.open(folder / "faq")
    return RequestKind(
        "/v1/search",
        [{"question": question, "top": 10} for question in questions],
        lambda n: [[one.id, one.score, one.probability] for one in faq.search(questions[n])],
        lambda found: [[one["id"], one["score"], one["probability"]] for one in found["answers"]],
    )


def measured(folder: Path, questions: list[str], seconds: float) -> dict[str, Any]:
    """Searches a second, by workers and clients."""
    kind, rows = search_kind(folder, questions), {}
    for workers in WORKERS:
        server = Server(folder, "", "--workers", str(workers), "--no-feedback", served=["faq"])
        for clients in CLIENTS:
            row = timed(server, kind, clients, seconds)
            rows[f"{workers} workers, {clients} clients"] = row
            print(workers, clients, json.dumps(row), flush=True)
        server.stop()
    return rows


async def changing(server: Server, tally: Tally, end: float) -> dict[str, int]:
    """Put an entry, look for it on another connection, and remove it now and then."""
    n = 0
    while time.perf_counter() < end:
        n += 1
        entry = {"id": f"new-{n % 50}", "text": f"The answer is {n}.", "questions": [f"what about xyzzy{n}"]}
        body = {"entries": [entry]}
        await ask(server, tally, "/v1/collections/faq/entries", body, 200, "PUT")
        found = await ask(server, tally, "/v1/search", {"question": f"xyzzy{n}", "top": 1}, 200)
        tally.wrong += found is not None and found["answers"][0]["text"] != entry["text"]
        if n % 3 == 0:
            await ask(server, tally, "/v1/collections/faq/remove", {"ids": [entry["id"]]}, 200)
        await asyncio.sleep(0.05)
    return {"changes": n}


async def refitting(server: Server, tally: Tally, end: float) -> dict[str, Any]:
    """Refit, wait for what becomes of it, and go on with the next one."""
    ends: list[float] = []
    kept, start = 0, time.perf_counter()
    while time.perf_counter() < end:
        begun = await ask(server, tally, "/v1/collections/faq/refit", {}, 202)
        if begun is None:  # the service has begun one by itself
            await asyncio.sleep(1)
            continue
        about: dict[str, Any] = {"refit": begun}
        while about["refit"]["state"] == "running" and time.perf_counter() < end:
            await asyncio.sleep(0.5)
            about = await ask(server, tally, "/v1/collections/faq", None, 200, "GET") or about
        last = about["refit"]["last"]
        if last is not None and last != begun["last"]:
            ends.append(time.perf_counter())
            kept += last["kept"]
    pauses = [later - one for one, later in zip([start, *ends], [*ends, end], strict=True)]
    return {"refits": len(ends), "refits kept": kept, "longest seconds without a new fit": round(max(pauses), 1)}


async def ask(
    server: Server, tally: Tally, path: str, body: dict[str, Any] | None, expected: int, method: str = "POST"
) -> dict[str, Any] | None:
    """One request on a connection of its own; None where it was refused or dropped, which is counted."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(request(path, body).replace(b"POST", method.encode(), 1))
        status, content = await answer(reader)
        writer.close()
    except (OSError, asyncio.IncompleteReadError):
        tally.dropped += 1
        return None
    if status != expected:
        tally.refused += status != 409  # a refit goes on already
        return None
    found: dict[str, Any] = json.loads(content)
    return found


async def known_client(server: Server, tally: Tally, known: list[tuple[bytes, str]], number: int, end: float) -> None:
    """Ask known questions, on one connection; the answer must be among the first three."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    n = number
    while time.perf_counter() < end:
        n += 1
        whole, expected = known[n % len(known)]
        start = time.perf_counter()
        try:
            writer.write(whole)
            status, content = await answer(reader)
        except (OSError, asyncio.IncompleteReadError):
            tally.dropped += 1
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            continue
        if status != 200:
            tally.refused += 1
            await asyncio.sleep(0.1)
            continue
        tally.seconds.append(time.perf_counter() - start)
        tally.wrong += expected not in [one["id"] for one in json.loads(content)["answers"]]
    writer.close()


def found_by_all(folder: Path) -> list[tuple[bytes, str]]:
    """Requests of known questions whose answer is the first by far, and its id."""
    faq = Collection.open(folder / "faq")
    entries, made = faq.entries, []
    for entry in (entries[n] for n in range(len(entries))):
        for question in entry.questions[:3]:
            if faq.search(question, top=1)[0].id == entry.id:
                made.append((request("/v1/search", {"question": question, "top": 3}), entry.id))
    return made


def long_load(folder: Path, seconds: float) -> dict[str, Any]:
    """Many clients while entries are put and removed, found by whoever is asked, and refits go on."""
    known = found_by_all(folder)
    arguments = ("--workers", "2", "--writable", "--no-feedback", "--timeout", "60")
    server = Server(folder, "", *arguments, served=["faq"])
    tally, memory = Tally(), []

    async def watch(end: float) -> None:
        while time.perf_counter() < end:
            memory.append(round(server.memory()))
            await asyncio.sleep(5)

    async def run() -> dict[str, Any]:
        end = time.perf_counter() + seconds
        clients = [known_client(server, tally, known, number, end) for number in range(LONG_CLIENTS)]
        aside = asyncio.gather(changing(server, tally, end), refitting(server, tally, end))
        await asyncio.gather(watch(end), *clients)
        changes, refits = await aside
        return {**changes, **refits}

    start = time.perf_counter()
    changes = asyncio.run(run())
    elapsed = time.perf_counter() - start
    server.stop()
    return {"clients": LONG_CLIENTS, **tally.row(elapsed), **changes, "memory MB, by 5 s": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, help="of each figure")
    parser.add_argument("--load", type=float, default=0, help="seconds of the long load, which is left out without")
    options = parser.parse_args()
    rows: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    about = {"commit": commit(), "cores": os.cpu_count(), "load before": round(os.getloadavg()[0], 2)}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        questions = write(folder)
        rows = {**rows, "about": about, **measured(folder, questions, options.seconds)}
        if options.load:
            rows["long load"] = {"about": about, **long_load(folder, options.load)}
            print(json.dumps(rows["long load"]))
    with atomic_write(RESULTS) as file:
        json.dump(rows, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
