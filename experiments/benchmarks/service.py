"""What the service costs and holds: requests a second and latencies, batching, start, reload, and a long load.

    python -m experiments.benchmarks.service               # about three minutes; to experiments/results/service.json
    python -m experiments.benchmarks.service --load 300    # and 200 clients for five minutes, every answer compared

Collections are another program, `collection_service.py`.

Two matchers with drawn weights (speed does not depend on them): MV-LSTM with its default arguments, and CNTN for an
archive of 100,000 made pairs. Texts are of drawn words. `rank` has 100 candidates of 50 words, encoded before (`--new`:
that come for the first time); `search` looks at 100 candidates. The service is a process of its own on loopback;
clients are connections that ask again as soon as they are answered. They share the two cores with it, so that figures
at many clients are low rather than high, and with whatever else this machine does: "CPU ms" of the serving process for
each answer is what does not depend on that.
Every answer is compared with the library's own, byte by byte with one that was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from experiments import places
from experiments.reproduction.provenance import commit
from matchloom import Matcher, Pair
from matchloom.basics.files import atomic_write
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.models import build_model
from matchloom.search.lance.collection import LanceCollection
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab

RESULTS = places.RESULTS / "service.json"
WORDS = [f"w{n:x}" for n in range(20_000)]
CLIENTS = (1, 16, 200)
QUERIES = 20
NEW_LISTS = 150  # more than the service keeps encoded, so that each is new to it when it comes again
TURNS = 7
# Batches of one request each: what many clients would get if theirs were not scored together.
UNBATCHED = "import matchloom.service.batching as b; b._PAIRS = 1; "
DRAW = """async () => {
  const { heatmap } = await import("/static/heatmap.js");
  const words = Array.from({ length: 50 }, (_, at) => ({ word: `word${at}`, at }));
  const values = Array.from({ length: 2500 }, (_, n) => Math.sin(n));
  const marks = Array.from({ length: 50 }, (_, n) => ({ row: n, col: n, channel: 0, note: "" }));
  const channels = [{ name: "a", label: "a", low: -1, high: 1, places: 2, values }];
  const taken = [];
  for (let turn = 0; turn < 10; turn++) {
    const host = document.body.appendChild(document.createElement("div"));
    const start = performance.now();
    heatmap(host, { rows: words, cols: words, rowName: "a", colName: "b", channels, marks, paths: {} }).show(0);
    host.getBoundingClientRect();
    taken.push(performance.now() - start);
    host.remove();
  }
  return taken;
}"""
SERVE = "import sys; from matchloom.cli import main; sys.exit(main(sys.argv[1:]))"


def drawn(draw: np.random.Generator, count: int, low: int, high: int) -> list[str]:
    """Texts of words drawn by their rank, as words of a language are."""
    lengths = draw.integers(low, high + 1, count)
    words = np.minimum(draw.zipf(1.3, int(lengths.sum())) - 1, len(WORDS) - 1).tolist()
    at = iter(words)
    return [" ".join(WORDS[next(at)] for _ in range(length)) for length in lengths.tolist()]


def matcher(name: str) -> Matcher:
    """A matcher with drawn weights."""
    tokenizer, vocab = Tokenizer(max_words=200), Vocab.build([WORDS])
    weight = torch.randn(len(vocab), 50, generator=torch.Generator().manual_seed(0))
    embedding = WordEmbedding(len(vocab), 50, weight.numpy())
    arguments: dict[str, Any] = {"lexical": True} if name == "mv_lstm" else {}
    return Matcher(
        name, arguments, build_model(name, arguments, embedding, seed=0).eval(), embedding.reader(tokenizer, vocab)
    )


def write(folder: Path, pairs: int) -> None:
    """The matcher `mv` and the archive `archive`."""
    draw = np.random.default_rng(0)
    matcher("mv_lstm").save(folder / "mv")
    matcher("cntn").save(folder / "cntn")
    questions, answers = drawn(draw, pairs, 5, 15), drawn(draw, pairs, 10, 50)
    made = (Pair(q, a, query_id=f"q{n}") for n, (q, a) in enumerate(zip(questions, answers, strict=True)))
    LanceCollection.create(folder / "archive", folder / "cntn").add(made)


class RequestKind(NamedTuple):
    """One kind of request: where it goes, bodies, what the library answers to each, and what an answer says."""

    path: str
    bodies: list[dict[str, Any]]
    expected: Callable[[int], Any]
    read: Callable[[Any], Any]


def tasks(folder: Path) -> dict[str, RequestKind]:
    """Rank, search and score, with the library's own answers."""
    draw = np.random.default_rng(1)
    mv, index = Matcher.load(folder / "mv"), LanceCollection.open(folder / "archive")
    queries, texts = drawn(draw, QUERIES, 5, 15), drawn(draw, 100, 50, 50)
    encoded = mv.encode(texts)
    ranks = [{"system": "mv", "query": query, "candidates": texts, "top": 10} for query in queries]
    searches = [{"system": "archive", "question": query, "top": 10} for query in queries]
    scores = [{"system": "mv", "pairs": [{"query": query, "text": texts[n]}]} for n, query in enumerate(queries)]
    return {
        "rank": RequestKind(
            "/v1/rank",
            ranks,
            lambda n: [[one.index, one.score] for one in mv.rank(queries[n], encoded, top=10)],
            lambda found: [[one["index"], one["score"]] for one in found["ranking"]],
        ),
        "search": RequestKind(
            "/v1/search",
            searches,
            lambda n: [[one.id, one.score] for one in index.search(queries[n], top=10)],
            lambda found: [[one["id"], one["score"]] for one in found["answers"]],
        ),
        "score": RequestKind(
            "/v1/score",
            scores,
            lambda n: [mv.score(queries[n], texts[n])],
            lambda found: found["scores"],
        ),
    }


class Server:
    """`matchloom serve` in a process of its own."""

    def __init__(
        self, folder: Path, before: str = "", *arguments: str, served: Sequence[str] = ("mv", "archive")
    ) -> None:
        start = time.perf_counter()
        command = [sys.executable, "-c", before + SERVE, "serve", *served, "--port", "0", "--quiet", *arguments]
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*command], cwd=folder, stderr=log)
        while "Ready: " not in self.log.read_text():
            if self.process.poll() is not None:
                raise SystemExit(self.log.read_text())
            time.sleep(0.02)
        self.seconds = time.perf_counter() - start
        self.port = int(self.log.read_text().split("Ready: ")[1].split(":")[2].strip("/ \n"))

    def processes(self) -> list[int]:
        """Itself and its workers."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        children = [int(one) for task in tasks.iterdir() for one in (task / "children").read_text().split()]
        return [self.process.pid, *children]

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        told = (Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in self.processes())
        return sum(int(fields[11]) + int(fields[12]) for fields in told) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Resident megabytes; pages that several workers map count once for each."""
        found = (Path(f"/proc/{one}/status").read_text() for one in self.processes())
        return sum(int(status.split("VmRSS:")[1].split()[0]) for status in found) / 1024

    def stop(self) -> None:
        """End it as a user would."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


@dataclass
class Tally:
    """What clients saw."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    refused: int = 0
    dropped: int = 0

    def row(self, elapsed: float) -> dict[str, Any]:
        """As figures."""
        at = sorted(self.seconds) or [float("nan")]
        return {
            "a second": round(len(self.seconds) / elapsed, 1),
            "p50 ms": round(1000 * at[len(at) // 2], 1),
            "p99 ms": round(1000 * at[min(len(at) - 1, int(0.99 * len(at)))], 1),
            "answers": len(self.seconds),
            "wrong": self.wrong,
            "refused": self.refused,
            "dropped": self.dropped,
        }


def request(path: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return int(head[9:12]), await reader.readexactly(length)


async def load(
    port: int, asked: Sequence[RequestKind], clients: int, seconds: float, aside: Callable[[], Any] | None = None
) -> tuple[Tally, float]:
    """So many clients for so long, each answer compared; `aside` is awaited beside them."""
    tally = Tally()
    sent = [[request(task.path, body) for body in task.bodies] for task in asked]
    right: dict[tuple[int, int], bytes] = {}
    for t, task in enumerate(asked):  # by JSON once, by bytes from then on
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for n, whole in enumerate(sent[t]):
            writer.write(whole)
            status, found = await answer(reader)
            if status != 200 or task.read(json.loads(found)) != task.expected(n):
                raise SystemExit(f"{task.path} {n}: {status} {found[:200]!r} is not what the library answers")
            right[t, n] = found
        writer.close()
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        n = number
        while time.perf_counter() < end:
            t, n = n % len(asked), n + 1
            at = (n // len(asked)) % len(sent[t])
            start = time.perf_counter()
            try:
                writer.write(sent[t][at])
                status, found = await answer(reader)
            except (OSError, asyncio.IncompleteReadError):
                tally.dropped += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                continue
            if status == 200:
                tally.seconds.append(time.perf_counter() - start)
                tally.wrong += found != right[t, at]
            else:
                tally.refused += 1
                await asyncio.sleep(0.1)
        writer.close()

    start = time.perf_counter()
    beside = None if aside is None else asyncio.create_task(aside())
    await asyncio.gather(*(client(number) for number in range(clients)))
    if beside is not None:
        beside.cancel()
    return tally, time.perf_counter() - start


def library(task: RequestKind, seconds: float) -> tuple[float, float]:
    """Seconds and processor seconds of the library's own call, the median and the mean."""
    task.expected(0)
    found: list[float] = []
    end, cpu = time.perf_counter() + seconds, time.process_time()
    while time.perf_counter() < end or len(found) < 5:
        start = time.perf_counter()
        task.expected(len(found) % len(task.bodies))
        found.append(time.perf_counter() - start)
    return statistics.median(found), (time.process_time() - cpu) / len(found)


def timed(server: Server, task: RequestKind, clients: int, seconds: float) -> dict[str, Any]:
    """The figures of one load, with the processor time of an answer."""
    cpu = server.cpu()
    tally, elapsed = asyncio.run(load(server.port, [task], clients, seconds))
    made = len(tally.seconds) + len(task.bodies)  # those that were compared first
    return {**tally.row(elapsed), "CPU ms": round(1000 * (server.cpu() - cpu) / made, 2)}


def new_candidates(folder: Path, seconds: float) -> dict[str, Any]:
    """One client that ranks 100 texts of 50 words which the service has not encoded."""
    draw, mv = np.random.default_rng(2), Matcher.load(folder / "mv")
    queries, lists = drawn(draw, NEW_LISTS, 5, 15), [drawn(draw, 100, 50, 50) for _ in range(NEW_LISTS)]
    bodies = [
        {"system": "mv", "query": query, "candidates": texts, "top": 10}
        for query, texts in zip(queries, lists, strict=True)
    ]
    kind = RequestKind(
        "/v1/rank",
        bodies,
        lambda n: [[one.index, one.score] for one in mv.rank(queries[n], lists[n], top=10)],
        lambda found: [[one["index"], one["score"]] for one in found["ranking"]],
    )
    own = library(kind, seconds)
    server = Server(folder, served=("mv",))
    found = timed(server, kind, 1, seconds)
    server.stop()
    return {"library ms": round(1000 * own[0], 2), "library CPU ms": round(1000 * own[1], 2), "1 client": found}


def measured(folder: Path, seconds: float) -> dict[str, Any]:
    """All figures but the long load."""
    asked = tasks(folder)
    server = Server(folder)
    rows: dict[str, Any] = {"start to ready, seconds": round(server.seconds, 2)}
    rows["start to ready, CPU seconds"] = round(server.cpu(), 2)
    for name in ("rank", "search"):
        turns = []
        for _ in range(TURNS):  # the library and the service in turns, since the machine is shared
            own = library(asked[name], seconds / 3)
            found = timed(server, asked[name], 1, seconds / 3)
            turns.append((1000 * own[0], found["p50 ms"], 1000 * own[1], found["CPU ms"]))
        times = [round(statistics.median(side), 2) for side in zip(*turns, strict=True)]
        row: dict[str, Any] = dict(
            zip(("library ms", "service ms", "library CPU ms", "service CPU ms"), times, strict=True)
        )
        row["over the library at one client"] = round(statistics.median(b / a for a, b, _, _ in turns) - 1, 3)
        row["CPU over the library"] = round(statistics.median(b / a for _, _, a, b in turns) - 1, 3)
        for clients in CLIENTS:
            row[f"{clients} clients"] = timed(server, asked[name], clients, seconds)
        rows[name] = row
        print(name, json.dumps(row), flush=True)
    together = timed(server, asked["score"], 64, seconds)
    server.stop()
    server = Server(folder, UNBATCHED)
    alone = timed(server, asked["score"], 64, seconds)
    server.stop()
    ratio = {key: round(together[key] / alone[key], 2) for key in ("a second", "CPU ms")}
    rows["score, 64 clients"] = {"batched": together, "one by one": alone, "ratio": ratio}
    print("score", json.dumps(rows["score, 64 clients"]), flush=True)
    return rows


def page_figures(folder: Path) -> dict[str, Any]:
    """The page in Debian's chromium: its first paint, and a map of 50 x 50 words drawn ten times."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return {"skipped": "chromium is not installed"}
    from playwright.sync_api import sync_playwright

    server = Server(folder)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        paints, draws = [], []
        for _ in range(5):
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.port}/", wait_until="networkidle")
            paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            draws += page.evaluate(DRAW)
            page.close()
        browser.close()
    server.stop()
    return {"first paint ms": round(statistics.median(paints)), "map of 50 x 50 ms": round(statistics.median(draws), 1)}


def long_load(folder: Path, seconds: float) -> dict[str, Any]:
    """200 clients that score, rank and search, while everything is read anew every half minute."""
    asked = list(tasks(folder).values())
    server = Server(folder, "", "--timeout", "60")
    memory: list[float] = []
    reloads = 0

    async def aside() -> None:
        nonlocal reloads
        while True:
            for _ in range(6):
                await asyncio.sleep(5)
                memory.append(server.memory())
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(request("/v1/reload", {}))
            status, found = await answer(reader)
            writer.close()
            reloads += status == 200 and not json.loads(found)["refused"]

    tally, elapsed = asyncio.run(load(server.port, asked, 200, seconds, aside))
    server.stop()
    return {
        "clients": 200,
        "seconds": round(elapsed),
        **tally.row(elapsed),
        "reloads": reloads,
        "memory MB, by 5 s": [round(value) for value in memory],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6, help="of each figure")
    parser.add_argument("--pairs", type=int, default=100_000, help="in the archive")
    parser.add_argument("--load", type=float, default=0, help="seconds of the long load, which is left out without")
    parser.add_argument("--only-load", action="store_true", help="the other figures stay as they are")
    parser.add_argument("--new", action="store_true", help="ranking of new candidates alone; the others stay")
    options = parser.parse_args()
    before = round(os.getloadavg()[0], 2)
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder, 1_000 if options.new else options.pairs)
        about = {
            "commit": commit(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load before": before,
        }
        if not (options.only_load or options.new):
            rows = {**rows, "about": about, **measured(folder, options.seconds), "page": page_figures(folder)}
        if not options.only_load or options.new:
            rows["rank, new candidates"] = {"about": about, **new_candidates(folder, options.seconds)}
            print(json.dumps(rows["rank, new candidates"]))
        if options.load:
            rows["long load"] = {"about": about, **long_load(folder, options.load)}
            print(json.dumps(rows["long load"]))
    with atomic_write(RESULTS) as file:
        json.dump(rows, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
