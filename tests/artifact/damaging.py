"""Saved folders, damaged in every way: bytes, lengths, kinds of files, values, and with checksums that fit again."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch

from matchloom.artifact.manifest import dumps, sha256
from matchloom.types import MatchloomError
from tests.artifact.samples import SAMPLES

# What stands in for a value: other kinds, and sizes that no one writes.
STRANGE: list[Any] = [
    None, True, -1, 0, 1.5, 1e308, 10**25, "", "x", "\0", "é" * 300, [], {}, [[]], {"": None}, [1, "a"], {"kind": []},
    {"kind": "word_embedding"}, float("inf"), 2**31,
]  # fmt: skip


def flip(path: Path, draw: random.Random) -> None:
    """One bit, or some."""
    content = bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 1, 8])):
        if content:
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def cut(path: Path, draw: random.Random) -> None:
    """At its end."""
    path.write_bytes(path.read_bytes()[: draw.randrange(path.stat().st_size + 1)])


def grow(path: Path, draw: random.Random) -> None:
    """By bytes of no meaning."""
    path.write_bytes(path.read_bytes() + draw.randbytes(draw.choice([1, 7, 4096])))


def huge(path: Path, draw: random.Random) -> None:
    """More than any memory has, and nothing on the disk."""
    os.truncate(path, 2**36)


def folder(path: Path, draw: random.Random) -> None:
    """In place of the file."""
    path.unlink()
    path.mkdir()


def link(path: Path, draw: random.Random) -> None:
    """To itself, to a device that never ends, or to the same content elsewhere."""
    moved = path.with_name("elsewhere")
    path.rename(moved)
    path.symlink_to(draw.choice([path, Path("/dev/zero"), moved]))


def pipe(path: Path, draw: random.Random) -> None:
    """Which nobody writes to."""
    path.unlink()
    os.mkfifo(path)


def gone(path: Path, draw: random.Random) -> None:
    """Removed."""
    path.unlink()


def deep(path: Path, draw: random.Random) -> None:
    """JSON without end."""
    path.write_text(draw.choice(["[", '{"a":']) * 100_000)


def values(path: Path, draw: random.Random) -> None:
    """One value of JSON, or a line of text."""
    path.write_bytes(changed_content(path, draw))


WAYS = (flip, cut, grow, huge, folder, link, pipe, gone, deep, values)


def damage(home: Path, other: Path, draw: random.Random) -> str:
    """Harm one file of a folder, exchange it with another's, or forge it with all checksums; what was done."""
    files = sorted(path for path in home.rglob("*") if path.is_file())
    path = draw.choice(files)
    n = draw.randrange(len(WAYS) + 4)
    if n >= len(WAYS) + 1:
        return forge(home, draw)
    if n == len(WAYS):
        found = draw.choice([one for one in (other / path.relative_to(home), draw.choice(files)) if one.is_file()])
        content = found.read_bytes()
        path.write_bytes(content)
        return f"exchanged {path.name}"
    WAYS[n](path, draw)
    return f"{WAYS[n].__name__} {path.name}"


def forge(home: Path, draw: random.Random) -> str:
    """Change settings or a file, and make all checksums fit: checks of kinds and shapes are left."""
    manifests = sorted(path for path in home.rglob("*.json") if b'"checksums"' in path.read_bytes())
    path = draw.choice(manifests)
    manifest = json.loads(path.read_bytes())
    own = sorted(name for name in manifest["checksums"] if "/" not in name)
    name = draw.choice(["", *own])
    if name:
        content = changed_content(path.with_name(name), draw)
        path.with_name(name).write_bytes(content)
        manifest["checksums"][name] = sha256(content)
    else:
        manifest["settings"] = changed(manifest["settings"], draw)
    rewrite(home, path, manifest)
    return f"forged {path.relative_to(home)}: {name or 'settings'}"


def rewrite(home: Path, path: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest with its checksum, and those of the artifacts that it is inside of, up to `home`."""
    manifest.pop("checksum", None)
    path.write_bytes(dumps(manifest))
    if path.parent == home:
        return
    for above in path.parent.parent.glob("*.json"):
        outer = json.loads(above.read_bytes())
        key = f"{path.parent.name}/{path.name}"
        if key in outer.get("checksums", {}):
            outer["checksums"][key] = sha256(path.read_bytes())
            rewrite(home, above, outer)


def changed_content(path: Path, draw: random.Random) -> bytes:
    """A file with a value, a line or a tensor changed."""
    content = path.read_bytes()
    if path.suffix == ".json":
        return json.dumps(changed(json.loads(content), draw)).encode()
    if path.suffix == ".safetensors":
        return changed_tensors(content, draw)
    lines = content.split(b"\n")
    n = draw.randrange(len(lines))
    strange = [lines[n] * 2, b"", b"a\tb", lines[0], b"x\t1\t99999999999999999999", b"\xff", b"{}", b'{"id": 1}']
    lines[n] = draw.choice(strange)
    return b"\n".join(lines)


def changed(whole: Any, draw: random.Random) -> Any:
    """The same with one value, anywhere inside, replaced or taken away."""
    if not isinstance(whole, dict | list) or not whole or draw.random() < 0.1:
        return draw.choice(STRANGE)
    places = list(whole) if isinstance(whole, dict) else list(range(len(whole)))
    at = draw.choice(places)
    if draw.random() < 0.15:
        if isinstance(whole, dict):
            return {key: value for key, value in whole.items() if key != at}
        return [value for n, value in enumerate(whole) if n != at]
    copy = dict(whole) if isinstance(whole, dict) else list(whole)
    copy[at] = changed(whole[at], draw)
    return copy


def changed_tensors(content: bytes, draw: random.Random) -> bytes:
    """One tensor less or more, or of another shape or kind."""
    tensors = safetensors.torch.load(content)
    name = draw.choice(sorted(tensors))
    x = tensors[name]
    ways: list[Callable[[], Any]] = [
        lambda: tensors.pop(name),
        lambda: tensors.update({name: x.flatten()[: max(0, x.numel() - 1)].clone()}),
        lambda: tensors.update({name: x.flatten().repeat(2)}),
        lambda: tensors.update({name: x.double() if x.is_floating_point() else x.float()}),
        lambda: tensors.update({name: x.bool()}),
        lambda: tensors.update({name: x.new_full((), 1)}),
        lambda: tensors.update({name: x + 2**30 if not x.is_floating_point() else x * float("nan")}),
        lambda: tensors.update({"other": x.clone()}),
    ]
    draw.choice(ways)()
    return safetensors.torch.save(tensors)


class Damaged:
    """Two artifacts of a kind, and copies of the first that are damaged and loaded."""

    def __init__(self, home: Path, kind: str) -> None:
        self._sample = SAMPLES[kind]
        self.first, self._second, self._copy = home / "first", home / "second", home / "copy"
        for seed, path in enumerate((self.first, self._second)):
            self._sample.make(path, seed)
        self._ours, self._theirs = (self._sample.use(path) for path in (self.first, self._second))

    def _earlier(self) -> list[Any]:
        """What it says with fewer lines of its journal."""
        found = []
        for journal in self.first.glob("changes-*.jsonl"):
            lines = journal.read_bytes().splitlines(keepends=True)
            for count in range(len(lines) + 1):
                shutil.rmtree(self._copy, ignore_errors=True)
                shutil.copytree(self.first, self._copy)
                (self._copy / journal.name).write_bytes(b"".join(lines[:count]))
                (self._copy / journal.name).with_suffix(".confirmed").unlink()  # else a cut is refused
                found.append(self._sample.use(self._copy))
        return found

    def attempt(self, draw: random.Random) -> None:
        """Damage a copy: it is refused in one line that names it, or it says what it said."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self.first, self._copy)
        done = damage(self._copy, self._second, draw)
        try:
            found = self._sample.use(self._copy)
        except MatchloomError as error:
            told = str(error)
            assert str(self._copy) in told, f"{done}: names no file: {told}"
            assert "\n" not in told, f"{done}: {told}"
            assert len(told) < 1000, f"{done}: {told}"
            return
        if done.startswith("cut changes"):  # as if the last changes had never been made
            assert found in self._earlier(), done
        elif done.startswith("forged"):  # what a person may write who writes checksums too; numbers all the same
            assert not isinstance(found, list) or not found or isinstance(found[0], dict) or np.isfinite(found).all()
        else:
            assert found == self._ours or (found == self._theirs and done.startswith("exchanged")), done
