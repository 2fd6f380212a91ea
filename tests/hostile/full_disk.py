"""A service whose disk is full from time to time: what it confirms is kept, what it refuses is not done, it goes on.

    python -m tests.hostile.full_disk --tries 60

Everything that the service writes lies in a small file system in memory, for which one must be allowed to mount. Each
try leaves some bytes free, or none, sends writes of every kind, makes room again, and compares.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from matchloom.search.collection import Collection
from matchloom.search.feedback import read_feedback
from tests.hostile.service import Service

_SIZE = "24m"
_REFUSALS = {409, 503, 507}


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of some megabytes; an OSError where none may be mounted."""
    disk = folder / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", disk], capture_output=True, text=True
    )
    if done.returncode:
        raise OSError(done.stderr.strip())
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


class Full:
    """A service on that disk, and what it has confirmed."""

    def __init__(self, disk: Path, *options: str) -> None:
        self.disk = disk
        (disk / "tmp").mkdir()
        (disk / "log").symlink_to(disk.with_name("log"))  # what is told is not on the full disk
        os.environ["TMPDIR"] = str(disk / "tmp")
        try:
            self.service = Service(disk, "--feedback", "thumbs.jsonl", "--audit", "audit.jsonl", *options)
        finally:
            del os.environ["TMPDIR"]
        self.entries = {entry["id"]: entry["text"] for entry in self._listed()}
        self.judged: list[str] = []
        self.told = Counter[str]()
        self.wrong: list[str] = []
        self._filler = disk / "filler"
        self._count = 0

    def attempt(self, rng: random.Random) -> None:
        """Fill it, write, make room, compare."""
        self.fill(rng.choice((0, 0, 1, 100, 4096, 8192, 12_288, 20_480, 65_536)))
        try:
            for _ in range(rng.randrange(1, 12)):
                self._write(rng)
        finally:
            self._filler.unlink()
        self._compare(rng)

    def fill(self, left: int) -> None:
        """Fill the disk but for so many bytes."""
        with self._filler.open("wb", buffering=0) as file:
            with suppress(OSError):
                while True:
                    file.write(b"x" * 65_536)
            with suppress(OSError):
                while True:
                    file.write(b"x" * 512)
            file.truncate(max(0, file.tell() - left))

    def _write(self, rng: random.Random) -> None:
        self._count += 1
        name, home = f"new{rng.randrange(30)}", "/v1/collections/faq"
        text = f"By rule {self._count}." + " and more" * rng.choice((0, 100, 700, 700))
        put = {"id": name, "text": text, "questions": [f"how do I weave pattern {name}"]}
        some = [n for n in self.entries if n.startswith("new")] or ["none"]
        gone = rng.choice(some)
        asked = f"where is thumb {self._count}"
        pair = {"query": put["questions"][0], "text": text, "text_id": name}
        rows = f'id,question,answer\n{name},what is {name},"{text}"\n'
        ways: list[tuple[str, str, Any, dict[str, str | None]]] = [
            ("PUT", f"{home}/entries", {"entries": [put]}, {name: text}),
            ("POST", "/v1/archives/faq/pairs", {"pairs": [pair]}, {name: text}),
            ("POST", f"{home}/remove", {"ids": [gone]}, {gone: None}),
            ("POST", f"{home}/import", {"content": rows}, {name: text}),
            ("POST", f"{home}/inbox/assign", {"questions": [asked], "id": gone}, {}),
            ("POST", f"{home}/inbox/dismiss", {"questions": [asked]}, {}),
            ("POST", "/v1/feedback", {"question": asked, "id": "password", "label": 1}, {}),
            ("POST", f"{home}/refit", {"aside": rng.random() < 0.3}, {}),
            ("POST", f"{home}/promote", {}, {}),
            ("POST", "/v1/reload", {}, {}),
        ]
        method, path, body, change = rng.choice([*ways[:7], *ways])
        status, told = self._ask(method, path, body)
        self.told[f"{path.rpartition('/')[2]} {status}"] += 1
        if status < 300:
            for key, value in change.items():
                if value is None:
                    self.entries.pop(key, None)
                else:
                    self.entries[key] = value
            if path == "/v1/feedback":
                self.judged.append(asked)
        elif (status not in _REFUSALS and not (status == 404 and gone == "none")) or "error" not in told:
            self.wrong.append(f"{method} {path}: {status} {json.dumps(told)[:300]}")
        status, found = self._ask("POST", "/v1/search", {"question": "I forgot my password", "top": 1})
        if status != 200 or [one["id"] for one in found["answers"]] != ["password"]:
            self.wrong.append(f"a search beside it: {status} {json.dumps(found)[:300]}")

    def _compare(self, rng: random.Random) -> None:
        """What is served, and what another process finds in the folder, is what was confirmed and nothing else."""
        for _ in range(600):  # a refit that goes on
            if self._ask("GET", "/v1/collections/faq", None)[1]["refit"]["state"] != "running":
                break
            self._ask("GET", "/health", None)
        served = {entry["id"]: entry["text"] for entry in self._listed()}
        kept = Collection.open(self.disk / "faq")
        there = dict(zip(kept.entries.ids, kept.entries.texts, strict=True))
        for found, where in ((served, "served"), (there, "in the folder")):
            if found != self.entries:
                ids = {key for key in {*found, *self.entries} if found.get(key) != self.entries.get(key)}
                self.wrong.append(f"{where}: {sorted(ids)[:5]} are not as confirmed")
                self.entries = dict(served)
        if not Collection.check(self.disk / "faq"):
            self.wrong.append("the folder is damaged")
        thumbs = self.disk / "thumbs.jsonl"
        kept_thumbs = [one.question for one in read_feedback(thumbs).judgements] if thumbs.exists() else []
        if [one for one in self.judged if one not in kept_thumbs]:
            self.wrong.append("a confirmed thumb is lost")
        status, told = self._ask("GET", "/v1/collections/faq/audit?limit=100", None)
        if status != 200:
            self.wrong.append(f"the audit: {status} {told}")
        status, told = self._ask("POST", "/v1/feedback", {"question": "after", "id": "password", "label": 1})
        name = f"after{rng.randrange(4)}"
        entry = {"id": name, "text": "With room again.", "questions": ["is there room"]}
        again, more = self._ask("PUT", "/v1/collections/faq/entries", {"entries": [entry]})
        if (status, again) != (200, 200):
            self.wrong.append(f"with room again: {status} {told} {again} {more}")
        self.entries[name] = "With room again."

    def _listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("GET", "/v1/collections/faq/entries?limit=200", None)[1]["entries"]
        return found

    def _ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        response = httpx.request(method, self.service.url + path, json=body, timeout=60)
        try:
            return response.status_code, response.json()
        except ValueError:
            return response.status_code, {"text": response.text[:200]}


def filled(folder: Path, seed: int, tries: int) -> dict[str, Any]:
    """What became of so many tries."""
    with small_disk(folder) as disk:
        full = Full(disk)
        rng = random.Random(f"full disk {seed}")
        try:
            for number in range(tries):
                before = len(full.wrong)
                full.attempt(rng)
                if len(full.wrong) > before:
                    full.wrong[before] = f"try {number}: {full.wrong[before]}"
        finally:
            took = full.service.end()
        broken = full.service.broken()
    return {
        "tries": tries,
        "answers": dict(sorted(full.told.items())),
        "failures": [*full.wrong, *broken],
        "sigterm_to_exit_s": round(took, 2),
    }


def main() -> int:
    """The long round; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tries", type=int, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = filled(Path(folder), given.seed, given.tries)
    print(json.dumps(found, indent=1))
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
