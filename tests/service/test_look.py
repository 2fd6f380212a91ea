"""The schema of the file of `serve --page` says the same as the code that reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from matchloom.cli.docs import page_schema
from matchloom.service.look import read_look
from matchloom.types import MatchloomError

GOOD: list[dict[str, Any]] = [
    {},
    {"title": "Help", "intro": " Ask us. ", "examples": ["Where is my parcel?"]},
    {"title": "x" * 200, "examples": ["x"] * 20},
    {"examples": []},
    {"accent": "#0a6e5c", "accent_dark": "#FFF"},
    {"contact": "mailto:help@shop.example"},
    {"contact": "https://shop.example/help?a=1"},
    {"logo": "logo.svg"},
    {"logo": "logo.PNG"},
]
BAD: list[dict[str, Any]] = [
    {"titel": "Help"},
    {"title": 3},
    {"title": ""},
    {"title": "  "},
    {"intro": "x" * 201},
    {"examples": "Where?"},
    {"examples": ["x"] * 21},
    {"examples": [3]},
    {"examples": [" "]},
    {"accent": "green"},
    {"accent": "#0a6e5"},
    {"accent_dark": "#0a6e5c; x"},
    {"contact": "javascript:alert(1)"},
    {"contact": "https://shop.example/a b"},
    {"contact": "https://" + "x" * 200},
    {"logo": "logo.gif"},
    {"logo": "svg"},
]


def written(folder: Path, told: dict[str, Any]) -> Path:
    """The file; JSON's texts and lists are TOML's, too."""
    for name in ("logo.svg", "logo.PNG"):
        (folder / name).write_bytes(b"<svg/>")
    path = folder / "page.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in told.items()), encoding="utf-8")
    return path


def accepts(told: dict[str, Any]) -> bool:
    return jsonschema.Draft202012Validator(json.loads(page_schema())).is_valid(told)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(page_schema()))


@pytest.mark.parametrize("told", GOOD, ids=str)
def test_what_the_schema_takes_is_read(tmp_path: Path, told: dict[str, Any]) -> None:
    assert accepts(told)
    read_look(written(tmp_path, told))


@pytest.mark.parametrize("told", BAD, ids=lambda told: str(told)[:40])
def test_what_the_schema_refuses_is_refused(tmp_path: Path, told: dict[str, Any]) -> None:
    assert not accepts(told)
    with pytest.raises(MatchloomError):
        read_look(written(tmp_path, told))


@pytest.mark.parametrize("accent", ["#0a6e5c", "#ff0", "#ffffff", "#000000", "#777777"])
@pytest.mark.parametrize("page", ["#faf8f4", "#232731"])
def test_letters_in_the_owners_colour_can_be_read(accent: str, page: str) -> None:
    by_day, by_night = read_look(accent=accent).theme().splitlines()
    colours = dict(re.findall(r"--([a-z-]+): (#\w{6})", by_day if page == "#faf8f4" else by_night))
    assert contrast(colours["accent"], colours["on-accent"]) >= 4.4
    assert contrast(colours["accent-ink"], page) >= 4.5


def contrast(one: str, other: str) -> float:
    def bright(colour: str) -> float:
        red, green, blue = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    return (max(bright(one), bright(other)) + 0.05) / (min(bright(one), bright(other)) + 0.05)
