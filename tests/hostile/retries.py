"""Writes that are sent again with their Idempotency-Key, to two workers that are killed meanwhile: each is done once.

    python -m tests.hostile.retries --kills 40

Several clients judge, put and assign; each sends a write until it is answered, and now and then twice for no reason.
Workers are killed at random moments, from time to time all of them at once. In the end every write that was confirmed
stands once in the file of judgements, in the journal and in the audit file, and none twice.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from tests.hostile.service import Service


class _Clients:
    """Who writes: each write has its own name, by which it is found again."""

    def __init__(self, seed: int) -> None:
        self.url = ""
        self.confirmed: dict[str, set[str]] = {"judge": set(), "put": set(), "assign": set()}
        self.answers: Counter[str] = Counter()
        self.again = 0
        self.wrong: list[str] = []
        self._seed, self._lock = seed, threading.Lock()

    def run(self, number: int, ended: threading.Event) -> None:
        rng = random.Random(f"{self._seed} {number}")
        n = 0
        while not ended.is_set():
            n += 1
            kind, name = rng.choice(list(self.confirmed)), f"w{number}x{n}"
            method, path, body = {
                "judge": ("POST", "/v1/feedback", {"question": name, "id": "password", "label": 1}),
                "put": ("PUT", "/v1/collections/faq/entries", {"entries": [{"id": name, "text": f"so {name}"}]}),
                "assign": ("POST", "/v1/collections/faq/inbox/assign", {"questions": [name], "id": "delete"}),
            }[kind]
            key = {"Idempotency-Key": secrets.token_hex(8)}
            told = self._until_answered(method, path, body, key, ended)
            if told is None:
                continue
            with self._lock:
                self.answers[f"{kind} {told.status_code}"] += 1
                if told.is_success:
                    self.confirmed[kind].add(name)
            if told.is_success and rng.random() < 0.3:
                more = self._until_answered(method, path, body, key, ended)
                if more is not None and (more.status_code, more.text) != (told.status_code, told.text):
                    self.wrong.append(f"{kind}: {told.text[:200]} and then {more.status_code} {more.text[:200]}")

    def _until_answered(
        self, method: str, path: str, body: Any, key: dict[str, str], ended: threading.Event
    ) -> httpx.Response | None:
        first = True
        while not ended.is_set() or not first:  # what was begun is asked to its end
            try:
                found = httpx.request(method, self.url + path, json=body, headers=key, timeout=20)
                if found.status_code != 503 and found.json().get("error", {}).get("code") != "conflict":
                    return found
            except (httpx.HTTPError, ValueError):
                if ended.wait(0.05) and first:
                    return None
            with self._lock:
                self.again += not first
            first = False
            if ended.is_set():
                time.sleep(0.05)
        return None


def _children(pid: int) -> list[int]:
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(one) for one in (task / "children").read_text().split()]
    return [one for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def retried(folder: Path, seed: int, kills: int, clients: int = 6) -> dict[str, Any]:
    """So many kills; what was confirmed and what was found."""
    rng = random.Random(seed)
    options = ("--workers", "2", "--feedback", str(folder / "thumbs.jsonl"), "--audit", str(folder / "audit.jsonl"))
    service = Service(folder, *options)
    made = _Clients(seed)
    made.url = service.url
    ended = threading.Event()
    threads = [threading.Thread(target=made.run, args=(n, ended)) for n in range(clients)]
    done = whole = 0
    try:
        for thread in threads:
            thread.start()
        while done < kills:
            before = sum(made.answers.values())
            while sum(made.answers.values()) < before + 5:  # somebody works again
                time.sleep(0.02)
            time.sleep(rng.uniform(0.0, 0.3))
            workers = _children(service.process.pid)
            if not workers:
                continue
            if rng.random() < 0.15:  # the whole service
                service.process.kill()
                service.process.wait()
                for one in workers:
                    with suppress(ProcessLookupError):
                        os.kill(one, signal.SIGKILL)
                service = Service(folder, *options)
                made.url = service.url
                whole += 1
            else:
                with suppress(ProcessLookupError):
                    os.kill(rng.choice(workers), signal.SIGKILL)
            done += 1
        time.sleep(1.0)
        ended.set()
        for thread in threads:
            thread.join(120)
    finally:
        ended.set()
        end = service.end()
    return {
        "kills": done,
        "of the whole service": whole,
        "confirmed": {kind: len(names) for kind, names in made.confirmed.items()},
        "answers": dict(made.answers),
        "sent again": made.again,
        "failures": made.wrong[:10] + _compared(folder, made.confirmed),
        "sigterm_to_exit_s": round(end, 2),
    }


def _compared(folder: Path, confirmed: dict[str, set[str]]) -> list[str]:
    """Writes that are lost or doubled."""
    judged = Counter(json.loads(line)["question"] for line in (folder / "thumbs.jsonl").read_text().splitlines())
    put: Counter[str] = Counter()
    assigned: list[set[str]] = []
    for journal in folder.glob("faq/changes-*"):
        if journal.suffix == ".confirmed":
            continue
        for line in journal.read_bytes().splitlines():
            for one in json.loads(line[33:])["put"]:
                put[one["id"]] += 1
                if one["id"] == "delete":
                    assigned.append(set(one["questions"]))
    added: Counter[str] = Counter()
    for before, after in itertools.pairwise([set[str](), *assigned]):
        added.update(after - before)
    same = sum(before == after for before, after in itertools.pairwise(assigned))
    wrong = [f"{same} times a question was assigned that was there"] if same else []
    for kind, found in (("judge", judged), ("put", put), ("assign", added)):
        wrong += [
            f"{kind} {name}: confirmed, and there {found[name]} times" for name in confirmed[kind] if found[name] != 1
        ]
        wrong += [f"{kind} {name}: there {n} times" for name, n in found.items() if n > 1 and name.startswith("w")]
    return wrong[:20]


def main() -> int:
    """The long round; 1 if a write was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=40)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = retried(Path(folder), given.seed, given.kills)
    print(json.dumps(found, indent=2))
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
