"""Collections forged by somebody who writes checksums, too: numbers of the index, settings, lines of the journal.

What opens must answer: each try asks, explains, changes, checks and saves in a process of its own, so that native code
that follows a forged number out of its array is found by the signal that ends it.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from matchloom.artifact.manifest import sha256
from matchloom.search.arrays import map_arrays, write_arrays
from matchloom.search.collection import Collection
from matchloom.search.folder import _seed
from matchloom.search.journal import _checksum
from matchloom.types import MatchloomError
from tests.artifact.damaging import STRANGE, changed, rewrite
from tests.artifact.samples import make_collection, make_large_collection, make_tuned_collection
from tests.search.collections import as_large

ASKED = ("where is my loom", "pay by bill", "zebra", "question 7 of w3", "x" * 900, "the the the")
_MOST, _SECONDS = 6 * 2**30, 90  # memory and time of a try


class Forged:
    """Copies of a collection, forged and used."""

    def __init__(self, folder: Path, make: Callable[[Path, int], None]) -> None:
        self._large = make is make_large_collection
        self._whole, self._copy = folder / "whole", folder / "copy"
        make(self._whole, 0)

    def attempt(self, rng: random.Random) -> None:
        """Forge a copy and use it."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._whole, self._copy)
        done = rng.choice((_forge_index, _forge_index, _forge_index, _forge_settings, _forge_journal))(self._copy, rng)
        told = in_child(partial(self._use, rng))
        assert not told, f"{done}: {told}"

    def _use(self, rng: random.Random) -> None:
        if self._large:
            with as_large():
                use(self._copy, rng)
        else:
            use(self._copy, rng)


def in_child(work: Any) -> str:
    """Do some work in a forked process; what went wrong, or nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        code = 0
        try:
            resource.setrlimit(resource.RLIMIT_AS, (_MOST, _MOST))
            signal.alarm(_SECONDS)
            work()
        except BaseException:
            os.write(writing, traceback.format_exc()[-3000:].encode("utf-8", "replace"))
            code = 1
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read().decode("utf-8", "replace")
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return f"ended by {signal.Signals(os.WTERMSIG(status)).name} {said}"
    return said or ("" if status == 0 else f"status {status}")


def use(folder: Path, rng: random.Random) -> None:
    """Whatever one does with a collection. It may be refused in one line at any step; what it says is finite."""
    sys.stderr = io.StringIO()
    try:
        _use(folder, rng)
    except MatchloomError as error:
        told = str(error)
        assert "\n" not in told, told
        assert 0 < len(told) < 2000, told


def _use(folder: Path, rng: random.Random) -> None:
    Collection.check(folder)
    opened = Collection.open(folder)
    for hits in (*opened.search(ASKED, top=None), opened.search(ASKED[0], top=3, explain=50_000)):
        assert all(np.isfinite(one.score) for one in hits), hits
        assert all(one.probability is None or 0 <= one.probability <= 1.000001 for one in hits), hits
        json.dumps([one.text for one in hits], ensure_ascii=False).encode()
        for one in hits:
            if one.explanation is not None:
                json.dumps(one.explanation.to_dict(), allow_nan=False)
    opened.search(ASKED[1], where={"topic": "looms"}) if opened.status()["entries"] else None
    opened.add([("a new question of mine", "a new answer"), {"question": "one more", "answer": "x", "topic": "y"}])
    ids = opened.entries.ids
    opened.remove([ids[rng.randrange(len(ids))]])
    assert opened.search("a new question of mine", top=1)
    Collection.open(folder).search(ASKED, top=2)
    if rng.random() < 0.2:
        opened.refit()
        opened.search(ASKED, top=2)


# ---- ways


def _forge_index(folder: Path, rng: random.Random) -> str:
    """One or some numbers of one array."""
    manifest = json.loads((folder / "collection.json").read_bytes())
    name = next(one for one in manifest["checksums"] if one.startswith("index-"))
    arrays = {key: np.array(value) for key, value in map_arrays(folder / name, "none").items()}
    key = rng.choice(sorted(arrays))
    arrays[key], done = _changed_array(arrays[key], rng)
    stream = io.BytesIO()
    write_arrays(stream, arrays)
    (folder / name).write_bytes(stream.getvalue())
    manifest["checksums"][name] = sha256(stream.getvalue())
    rewrite(folder, folder / "collection.json", manifest)
    return f"{key}: {done}"


def _changed_array(array: np.ndarray[Any, Any], rng: random.Random) -> tuple[np.ndarray[Any, Any], str]:
    if not array.size:
        return np.resize(np.ones(1, array.dtype), 3), "not empty"
    flat = array.ravel()
    way = rng.randrange(7)
    if way < 4:
        at = [rng.randrange(flat.size) for _ in range(rng.choice((1, 1, 1, 3)))]
        if array.dtype.kind == "f":
            value: Any = rng.choice((0.0, -1.0, 1e30, -1e30, 1e-30, 3e38, float("nan"), float("inf")))
        elif array.dtype.kind == "b":
            value = rng.random() < 0.5
        else:
            value = rng.choice((0, -1, 1, 7, flat.size, 2**31 - 1, -(2**31), 255, int(flat.max()) + 1))
        with np.errstate(all="ignore"):
            flat[at] = np.array(value).astype(array.dtype)
        return array, f"{value} at {at}"
    if way == 4:
        return rng.choice((array[::-1].copy(), np.sort(array, axis=0))), "in another order"
    if way == 5:
        return np.roll(array, 1), "rolled"
    return np.zeros_like(array), "zeros"


def _forge_settings(folder: Path, rng: random.Random) -> str:
    manifest = json.loads((folder / "collection.json").read_bytes())
    before = json.dumps(manifest["settings"])
    manifest["settings"] = changed(manifest["settings"], rng)
    rewrite(folder, folder / "collection.json", manifest)
    return f"settings {json.dumps(manifest['settings'])[:3000]} {len(before)}"


_TEXTS = ("", " ", "\0", "\u202e", "e" * 20_000, "a b " * 5000, "=1+1", "\ufeff", "x", "password", "\n\n", "İ" * 50)


def _forge_journal(folder: Path, rng: random.Random) -> str:
    """Lines with the right checksums that no writer writes."""
    settings = json.loads((folder / "collection.json").read_bytes())["settings"]
    path = folder / f"changes-{settings['number']}.jsonl"
    lines = [json.loads(line.partition(b" ")[2]) for line in path.read_bytes().splitlines()]
    for _ in range(rng.choice((1, 2, 5))):
        one = {
            "id": rng.choice(("a1", "a2", "new", *_TEXTS)),
            "text": rng.choice(_TEXTS),
            "questions": [rng.choice(_TEXTS) for _ in range(rng.randrange(4))],
            "columns": {rng.choice(_TEXTS): rng.choice(_TEXTS) for _ in range(rng.randrange(3))},
        }
        line = {"put": [one] * rng.randrange(3), "remove": [rng.choice(("a1", "none", "a2"))] * rng.randrange(3)}
        if rng.random() < 0.3:
            line = changed(line, rng)
        lines.insert(rng.randrange(len(lines) + 1), line)
    if rng.random() < 0.2:
        lines = changed(lines, rng) if lines else [rng.choice(STRANGE)]
    last, made = _seed(settings), b""
    for line in lines if isinstance(lines, list) else [lines]:
        content = json.dumps(line, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
        last = _checksum(last, content)
        made += last.encode() + b" " + content + b"\n"
    path.write_bytes(made)
    return f"journal {made[:1500]!r}"


FORGED = {
    "forged: small": partial(Forged, make=make_collection),
    "forged: large": partial(Forged, make=make_large_collection),
    "forged: tuned": partial(Forged, make=make_tuned_collection),
}
