"""Saved folders, damaged in many ways: bytes, lengths, values of JSON, and with seals that were made to fit again."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import safe_open

from matchloom.sealed import _digest

# What stands in for a value: other kinds, and sizes that no one writes.
STRANGE: list[Any] = [
    None, True, -1, 0, 1.5, 1e308, 10**25, "", "x", "\0", "é" * 300, [], {}, [[]], {"": None}, [1, "a"], {"kind": []},
    {"kind": "word_embedding"}, float("inf"), 2**31,
]  # fmt: skip


WAYS = ("flip", "cut", "grow", "empty", "folder", "loop", "gone", "deep", "json", "resealed", "swapped")


def damage(folder: Path, draw: random.Random) -> str:
    """Change one file of a folder, or its seals with it; says what was done."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = draw.choice(files)
    kind = draw.choice(WAYS)
    content = path.read_bytes()
    if kind == "flip":
        for _ in range(draw.choice([1, 1, 8])):
            at = draw.randrange(max(1, len(content)))
            content = content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]
        path.write_bytes(content)
    elif kind == "cut":
        path.write_bytes(content[: draw.randrange(len(content) + 1)])
    elif kind == "grow":
        path.write_bytes(content + draw.randbytes(draw.choice([1, 7, 4096])))
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    elif kind == "loop":
        path.unlink()
        path.symlink_to(path)
    elif kind == "gone":
        path.unlink()
    elif kind == "deep":
        opening = draw.choice(["[", '{"a":'])
        path.write_text(opening * 100_000)
    elif kind == "swapped":
        path.write_bytes(draw.choice(files).read_bytes())
    elif kind == "json":
        path = draw.choice([one for one in files if one.suffix == ".json"] or files)
        _change_json(path, draw)
    else:
        reseal(folder, draw)
    return f"{kind} {path.name}"


def _change_json(path: Path, draw: random.Random) -> None:
    try:
        whole = json.loads(path.read_bytes())
    except ValueError:
        return
    path.write_text(json.dumps(changed(whole, draw)))


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


def reseal(folder: Path, draw: random.Random) -> None:
    """Change settings, tensors or a file beside a sealed one, and make all digests fit: checks of kinds are left."""
    sealed = [path for path in folder.rglob("*") if path.suffix in (".safetensors", ".trans_lm") and path.is_file()]
    if not sealed:
        return
    path = draw.choice(sealed)
    try:
        with safe_open(path, "pt") as opened:
            metadata = dict(opened.metadata() or {})
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        kind, settings = next((key, json.loads(value)) for key, value in metadata.items())
    except (StopIteration, ValueError):
        return
    what = draw.choice(["settings", "beside", "tensors"])
    if what == "settings":
        settings = changed(settings, draw)
    elif what == "beside" and settings.get("files"):
        name = draw.choice(sorted(settings["files"]))
        beside = path.with_name(name)
        if beside.suffix == ".json":
            _change_json(beside, draw)
        else:
            lines = beside.read_text(encoding="utf-8").split("\n")
            n = draw.randrange(len(lines))
            lines[n] = draw.choice([lines[n] * 2, "", "a\tb", lines[0], "x\t1\t99999999999999999999"])
            beside.write_text("\n".join(lines), encoding="utf-8")
        settings["files"][name] = hashlib.sha256(beside.read_bytes()).hexdigest()
    else:
        name = draw.choice(sorted(tensors))
        x = tensors[name]
        action: list[Callable[[], Any]] = [
            lambda: tensors.pop(name),
            lambda: tensors.update({name: x.flatten()[: max(0, x.numel() - 1)].clone()}),
            lambda: tensors.update({name: x.double() if x.is_floating_point() else x.float()}),
            lambda: tensors.update({name: x.bool()}),
            lambda: tensors.update({name: x.new_full((), 1)}),
            lambda: tensors.update({"other": x.clone()}),
        ]
        draw.choice(action)()
    if isinstance(settings, dict):
        settings.pop("digest", None)
        settings["digest"] = _digest(settings, tensors)
    path.write_bytes(safetensors.torch.save(tensors, {kind: json.dumps(settings)}))
