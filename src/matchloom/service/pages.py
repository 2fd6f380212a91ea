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


# What the pages have in common; {title}, {logo} and {intro} are the owner's (look.py).
_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{name}</title>
<link rel="icon" href="/static/icon.svg">
{styles}
<script type="module" src="/static/{script}.js"></script>
</head>
{body}</html>
"""
_SHARED = {
    "{key}": """<form id="key" hidden>
<label for="secret">This page needs an API key</label>
<div class="line"><input id="secret" type="password" autocomplete="off">
<button type="submit" class="go">Use it</button></div>
<p class="note">It is kept until this tab is closed, and sent to this service only.</p>
</form>""",
    "{problem}": '<p id="problem" class="problem" role="alert" hidden></p>',
    "{noscript}": """<noscript><p class="problem">This page needs JavaScript, which is switched off. \
The API works without it: <a href="/openapi.json">/openapi.json</a>.</p></noscript>""",
}


class Asset(NamedTuple):
    """A file as it is sent."""

    content: bytes
    kind: str
    tag: str


def read_assets(theme: str = "") -> dict[str, Asset]:
    """Every file of the page by name; `theme` is a stylesheet for the widget's host."""
    found: dict[str, bytes] = {}
    for entry in files("matchloom.service").joinpath("static").iterdir():
        if "." + entry.name.rpartition(".")[2] in _TYPES:
            content = entry.read_bytes()
            found[entry.name] = _document(content.decode()).encode() if entry.name.endswith(".html") else content
    found["style.css"] = asset("style.css").encode()
    # What the static explanation page has inside is drawn here by the same code, as modules.
    found["heatmap.js"] = (asset("heatmap.js", "matchloom.explanation") + "\nexport { heatmap };\n").encode()
    wiring = asset("page.js", "matchloom.explanation").partition('\ndocument.querySelectorAll(".one")')[0]
    found["wire.js"] = ('import { heatmap } from "./heatmap.js";\n' + wiring + "\nexport { wire };\n").encode()
    found["widget.js"] = _widget(found, theme).encode()
    del found["widget.css"]
    return {name: asset_of(name, content) for name, content in found.items()}


def _document(source: str) -> str:
    """A page of three lines about its head, an empty one, and its body."""
    head, _, body = source.partition("\n\n")
    about = dict(line.split(": ", 1) for line in head.splitlines())
    sheets = [
        "/theme.css" if name == "theme" else f"/static/{name}.css" for name in ("style", *about["styles"].split())
    ]
    for name, shared in _SHARED.items():
        body = body.replace(name, shared)
    return (
        _DOCUMENT.replace("{name}", about["title"])
        .replace("{styles}", "\n".join(f'<link rel="stylesheet" href="{sheet}">' for sheet in sheets))
        .replace("{script}", about["script"])
        .replace("{body}", body)
    )


def _widget(found: dict[str, bytes], theme: str) -> str:
    """One script of several modules and a stylesheet, in a scope of its own: a page that has it needs nothing else."""
    names = ("dom.js", "rich.js", "answers.js", "widget.js")
    plain = (_MODULE.sub("", found[name].decode()) for name in names)
    style = f"const STYLE = {json.dumps(found['widget.css'].decode() + theme)};\n"
    return "(() => {\n" + style + "\n".join(plain) + "})();\n"


def asset_of(name: str, content: bytes, kind: str = "") -> Asset:
    """A file as it is sent; its type by its name unless it is given."""
    kind = kind or _TYPES["." + name.rpartition(".")[2]]
    return Asset(content, kind, f'"{hashlib.sha256(content).hexdigest()[:20]}"')
