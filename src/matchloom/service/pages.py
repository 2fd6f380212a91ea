"""The files of the page, all in memory: a name that is none of theirs leads nowhere."""

from __future__ import annotations

import hashlib
import json
import re
from importlib.resources import files
from typing import NamedTuple

from matchloom.pages.document import asset

_MODULE = re.compile(r"^import .*?;\n|^export (?=const|function|async|class)", re.MULTILINE)
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
    found["widget.js"] = _widget(found).encode()
    del found["widget.css"]
    return {name: asset_of(name, content) for name, content in found.items()}


def _widget(found: dict[str, bytes]) -> str:
    """One script of several modules and a stylesheet, in a scope of its own: a page that has it needs nothing else."""
    names = ("dom.js", "rich.js", "answers.js", "widget.js")
    plain = (_MODULE.sub("", found[name].decode()) for name in names)
    style = f"const STYLE = {json.dumps(found['widget.css'].decode())};\n"
    return "(() => {\n" + style + "\n".join(plain) + "})();\n"


def asset_of(name: str, content: bytes, kind: str = "") -> Asset:
    """A file as it is sent; its type by its name unless it is given."""
    kind = kind or _TYPES["." + name.rpartition(".")[2]]
    return Asset(content, kind, f'"{hashlib.sha256(content).hexdigest()[:20]}"')
