"""How the page for users looks: title, logo, colours, a line, examples; by options or a small TOML file.

title = "Help"                  # of the page
intro = "Ask us anything."      # a line below it
logo = "logo.svg"               # beside the file; SVG, PNG, JPEG or WebP
accent = "#0a6e5c"              # of buttons
accent_dark = "#3fb89f"         # the same where the screen is dark
contact = "mailto:help@shop.example"
examples = ["Where is my parcel?"]
"""

from __future__ import annotations

import html
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matchloom.types import MatchloomError

_KINDS = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
}
_PLACE = re.compile(r"\{(title|logo|intro)\}")
_COLOUR = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_CONTACT = re.compile(r"""(?:https?://|mailto:)[^\s<>"']+""")
_LARGEST, _LONGEST, _MOST = 500_000, 200, 20  # bytes of a logo, characters of a text, examples
_WHOLE = 20_000  # bytes of the TOML file, of which ten times as many can take minutes
_PAPER, _NIGHT = "#faf8f4", "#232731"  # what letters stand on, by day and by night: the least apart from them
_READABLE = 4.5  # contrast of letters that can be read


@dataclass(frozen=True)
class Look:
    """What an owner says of the page.

    Args:
        title: Of the page.
        intro: A line below it.
        logo: A picture beside the file: SVG, PNG, JPEG or WebP.
        accent: The colour of buttons.
        accent_dark: The same where the screen is dark.
        contact: Where a person answers: an address of the web, or mailto:.
        examples: Questions to try; taken from the collection where there are none.
    """

    title: str = "Ask"
    intro: str = ""
    logo: tuple[bytes, str] | None = None
    accent: str = ""
    accent_dark: str = ""
    contact: str = ""
    examples: tuple[str, ...] = ()

    def page(self, source: str) -> str:
        """A page with the title, the logo and the line in their places."""
        logo = '<img src="/logo" alt="">' if self.logo is not None else ""
        intro = f'<p class="intro">{html.escape(self.intro)}</p>' if self.intro else ""
        given = {"title": html.escape(self.title), "logo": logo, "intro": intro}
        return _PLACE.sub(lambda found: given[found[1]], source)  # at once: a title may hold the name of a place

    def theme(self, root: str = ":root") -> str:
        """A stylesheet with the owner's colours; `root` is what has them."""
        light, dark = self.accent, self.accent_dark or self.accent
        made = f"{root} {{ {_colours(light, _PAPER)} }}\n" if light else ""
        night = f"@media (prefers-color-scheme: dark) {{ {root} {{ {_colours(dark, _NIGHT)} }} }}\n" if dark else ""
        return made + night


def read_look(
    path: Path | None = None, *, title: str | None = None, logo: Path | None = None, accent: str | None = None
) -> Look:
    """From a TOML file and from options, which come first."""
    look = Look() if path is None else _from_file(path)
    if title is not None:
        look = replace(look, title=_text("title=", title))
    if logo is not None:
        look = replace(look, logo=_logo("logo=", logo))
    if accent is not None:
        look = replace(look, accent=_colour("accent=", accent), accent_dark="")
    return look


def look_schema(about: Mapping[str, str]) -> dict[str, Any]:
    """The JSON schema of the TOML file, for editors; `about` has a line for each key."""
    text = {"type": "string", "maxLength": _LONGEST, "pattern": r"\S"}
    colour = {"type": "string", "pattern": f"^(?:{_COLOUR.pattern})$"}
    kinds: dict[str, dict[str, Any]] = {
        "title": text,
        "intro": text,
        "logo": {**text, "pattern": _file_of(_KINDS)},
        "accent": colour,
        "accent_dark": colour,
        "contact": {"type": "string", "maxLength": _LONGEST, "pattern": f"^(?:{_CONTACT.pattern})$"},
        "examples": {"type": "array", "items": text, "maxItems": _MOST},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The page of matchloom serve --page",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: {"description": about[name], **kinds[name]} for name in Look.__dataclass_fields__},
    }


def _file_of(endings: Iterable[str]) -> str:
    """What matches the names of files with these endings, in capitals or not."""
    either = ("".join(f"[{one}{one.upper()}]" for one in ending.removeprefix(".")) for ending in endings)
    return rf"\.(?:{'|'.join(either)})\s*$"


def _from_file(path: Path) -> Look:
    try:
        with path.open("rb") as file:
            content = file.read(_WHOLE + 1)
        if len(content) > _WHOLE:
            raise MatchloomError(f"{path} has more than {_WHOLE:,} bytes", code="too_large")
        given = tomllib.loads(content.decode())
    except OSError as error:
        raise MatchloomError(f"{path} cannot be read: {error.strerror or error}", code="unreadable") from None
    except ValueError as error:
        raise MatchloomError(f"{path} is no TOML: {error}", code="damaged") from None
    except RecursionError:
        raise MatchloomError(f"{path} is nested too deep", code="damaged") from None
    known = set(Look.__dataclass_fields__)
    if others := sorted(given.keys() - known):
        raise MatchloomError(f"{path}: {others[0]!r} is none of {', '.join(sorted(known))}", code="unknown_name")
    made: dict[str, Any] = {}
    for name, value in given.items():
        where = f"{path}: {name}"
        if name == "examples":
            if not isinstance(value, list) or len(value) > _MOST:
                raise MatchloomError(f"{where}: expected up to {_MOST} questions in a list", code="bad_value")
            made[name] = tuple(_text(where, one) for one in value)
        elif name == "logo":
            made[name] = _logo(where, _beside(path, where, _text(where, value)))
        elif name in ("accent", "accent_dark"):
            made[name] = _colour(where, value)
        elif name == "contact":
            made[name] = _contact(where, value)
        else:
            made[name] = _text(where, value)
    return Look(**made)


def _text(where: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise MatchloomError(f"{where}: expected a text of up to {_LONGEST} characters", code="bad_value")
    return value.strip()


def _colour(where: str, value: object) -> str:
    if not isinstance(value, str) or not _COLOUR.fullmatch(value):
        raise MatchloomError(f"{where} is {value!r}; expected a colour such as #0a6e5c", code="bad_value")
    return value.lower()


def _contact(where: str, value: object) -> str:
    if not isinstance(value, str) or not _CONTACT.fullmatch(value) or len(value) > _LONGEST:
        raise MatchloomError(f"{where}: expected https://... or mailto:...", code="bad_value")
    return value


def _beside(path: Path, where: str, name: str) -> Path:
    """A file that a look names: one of its own folder. A link would show the world what it leads to."""
    found = path.parent / name
    home = path.parent.resolve()
    try:
        real = found.resolve(strict=True)  # no link on the way, and no step up
        inside = real == home / name and real.is_relative_to(home) and stat.S_ISREG(real.lstat().st_mode)
    except (OSError, ValueError, RuntimeError) as error:  # a loop of links
        why = getattr(error, "strerror", None) or error
        raise MatchloomError(f"{where}: {found} cannot be read: {why}", code="unreadable") from None
    if not inside:
        raise MatchloomError(f"{where}: {name!r} is no file beside {path}", code="bad_value")
    return found


def _logo(where: str, path: Path) -> tuple[bytes, str]:
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        raise MatchloomError(f"{where}: {path.name} is no picture; expected {', '.join(_KINDS)}", code="bad_value")
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise MatchloomError(f"{where}: {path} cannot be read: {error.strerror or error}", code="unreadable") from None
    if len(content) > _LARGEST:
        raise MatchloomError(f"{where}: {path} has more than {_LARGEST:,} bytes", code="too_large")
    return content, kind


def _colours(colour: str, page: str) -> str:
    """The colour, letters that can be read on it, and one near it that can be read as letters on the page."""
    wide = colour if len(colour) == 7 else "#" + "".join(2 * one for one in colour[1:])
    on = max(("#ffffff", "#111111"), key=lambda one: _contrast(one, wide))
    ink = wide
    while _contrast(ink, page) < _READABLE:
        ink = _mixed(ink, "#000000" if page == _PAPER else "#ffffff")
    return f"--accent: {wide}; --on-accent: {on}; --accent-ink: {ink};"


def _contrast(one: str, other: str) -> float:
    """Of two colours, from 1 to 21, as WCAG 2 has it."""
    high, low = sorted((_bright(one), _bright(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _bright(colour: str) -> float:
    red, green, blue = (_linear(one / 255) for one in bytes.fromhex(colour[1:]))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _mixed(colour: str, other: str) -> str:
    """A tenth of the way to another."""
    both = zip(bytes.fromhex(colour[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + "".join(f"{round(0.9 * one + 0.1 * two):02x}" for one, two in both)


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)
