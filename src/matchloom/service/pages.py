"""The files of the page, all in memory: a name that is none of theirs leads nowhere."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import NamedTuple

from matchloom.pages.document import asset

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(NamedTuple):
    """A file as it is sent."""

    content: bytes
    kind: str
    tag: str


def read_assets() -> dict[str, Asset]:
    """Every file of the page by name."""
    found: dict[str, bytes] = {}
    for entry in files("matchloom.service").joinpath("static").iterdir():
        if "." + entry.name.rpartition(".")[2] in _TYPES:
            found[entry.name] = entry.read_bytes()
    found["style.css"] = asset("style.css").encode()
    # What the static explanation page has inside is drawn here by the same code, as modules.
    found["heatmap.js"] = (asset("heatmap.js", "matchloom.explanation") + "\nexport { heatmap };\n").encode()
    wiring = asset("page.js", "matchloom.explanation").partition('\ndocument.querySelectorAll(".one")')[0]
    found["wire.js"] = ('import { heatmap } from "./heatmap.js";\n' + wiring + "\nexport { wire };\n").encode()
    return {name: _asset(name, content) for name, content in found.items()}


def _asset(name: str, content: bytes) -> Asset:
    kind = _TYPES["." + name.rpartition(".")[2]]
    return Asset(content, kind, f'"{hashlib.sha256(content).hexdigest()[:20]}"')
