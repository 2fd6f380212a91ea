"""What every page is made of: one template, one policy, the shared style, and text from outside made harmless."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files
from string import Template

from matchloom.explanation.rounding import fixed
from matchloom.screen import printable


def asset(name: str, package: str = "matchloom.explanation") -> str:
    """A file that comes with a package of ours."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def document(title: str, body: str, footer: str, *, style: str, script: str = "") -> str:
    """A page that needs nothing else. `title`, `body` and `footer` are HTML; `style` comes on top of base.css.

    Its policy lets nothing be fetched and no script run but this one.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
    return Template(asset("page.html")).substitute(
        policy=policy,
        title=title,
        style=asset("base.css") + style,
        body=body,
        footer=footer,
        script=f"<script>{script}</script>\n" if script else "",
    )


def frame(page: str, title: str, *, scripts: bool = False) -> str:
    """A page within a notebook: in a frame, so that neither its style nor its script meets the notebook's."""
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="{"allow-scripts" if scripts else ""}" title="{escape(title)}" '
        'style="width: 100%; height: 42rem; border: 0"></iframe>'
    )


def safe_text(words: str) -> str:
    """Words from outside as HTML that shows them and does nothing else."""
    return escape(printable(words))


def figure(number: float, places: int, *, sign: bool = False) -> str:
    """A number with a true minus."""
    return fixed(number, places, sign=sign).replace("-", "−")


def signed(number: float, places: int) -> str:
    """A number with its sign, in the colour of it."""
    return f'<b class="figure {"neg" if round(number, places) < 0 else "pos"}">{figure(number, places, sign=True)}</b>'
