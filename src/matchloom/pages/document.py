"""One document: its head, its policy, its stylesheet; whole, in a notebook, or as a piece of the service's page."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files
from string import Template


def asset(name: str, package: str = "matchloom.pages") -> str:
    """A file that comes with a package of ours."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def document(
    title: str, body: str, footer: str = "Figures are rounded. Made by matchloom.", *, script: str = ""
) -> str:
    """A page that needs nothing else. `title`, `body` and `footer` are HTML.

    Its policy lets nothing be fetched and no script run but this one.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
    return Template(asset("page.html")).substitute(
        policy=policy,
        title=title,
        style=asset("style.css"),
        body=body,
        footer=footer,
        script=f"<script>{script}</script>\n" if script else "",
    )


def frame(page: str, title: str, *, scripts: bool = False, height: float = 42) -> str:
    """A page within a notebook: in a frame, so that neither its style nor its script meets the notebook's.

    A frame without scripts cannot fit its page: `height`, in lines of text or so, is the caller's guess.
    """
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="{"allow-scripts" if scripts else ""}" title="{escape(title)}" '
        f'style="width: 100%; height: {min(height, 42):g}rem; border: 0"></iframe>'
    )


def without_styles(piece: str) -> str:
    """A piece of a page whose policy allows no styles in HTML: they stand in `data-style`, for a script of that page.

    No text from outside can hold what is replaced: its quotes are escaped.
    """
    return piece.replace(' style="', ' data-style="')
