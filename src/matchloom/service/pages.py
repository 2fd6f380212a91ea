"""The files of the page, all in memory: a name that is none of theirs leads nowhere."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import NamedTuple

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# What the static explanation page has inside is drawn here by the same code, as modules.
_SHARED = {"base.css": "", "page.css": "", "heatmap.js": "\nexport { heatmap };\n"}


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
    shared = files("matchloom.explanation")
    for name, more in _SHARED.items():
        found[name] = shared.joinpath(name).read_bytes() + more.encode()
    for package in ("fitting", "reports"):
        found[f"{package}.css"] = files(f"matchloom.{package}").joinpath("page.css").read_bytes()
    # The one that draws an explanation needs the map, which a page in one file has beside it.
    wiring = shared.joinpath("page.js").read_text(encoding="utf-8")
    wiring = wiring.partition('\ndocument.querySelectorAll(".one")')[0]
    found["wire.js"] = ('import { heatmap } from "./heatmap.js";\n' + wiring + "\nexport { wire };\n").encode()
    return {name: _asset(name, content) for name, content in found.items()}


def _asset(name: str, content: bytes) -> Asset:
    kind = _TYPES["." + name.rpartition(".")[2]]
    return Asset(content, kind, f'"{hashlib.sha256(content).hexdigest()[:20]}"')
