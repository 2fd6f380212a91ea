"""What an encoder's card says: its licence, what it was trained on, and which of our corpora it may know from there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matchloom.encoders.folder import CARD
from matchloom.types import MatchloomError

SOURCES = "data_config.json"  # some cards name a few of the training sets, and this file beside them all
# Figures on these corpora are not those of unseen texts, if an encoder was trained on what is named here.
LEAKS = {
    "cqa": {"Amazon QA": r"amazon[-_ ]?qa", "Yahoo! Answers": r"yahoo[-_! ]*answers"},
    "citations": {"S2ORC": r"s2orc", "SPECTER": r"specter"},
}
_QUERY, _PASSAGE = "query: ", "passage: "  # of E5
_LARGEST = 1_000_000  # bytes of a card that are looked at


class Card(NamedTuple):
    """`leaks` has, for a corpus that `matchloom corpus` can read, the training sets that hold texts of it."""

    licence: str
    trained_on: list[str]
    leaks: dict[str, list[str]]


def read_card(folder: Path) -> Card:
    """The card of a folder; what it does not say is empty."""
    text = _text(folder / CARD)
    head = text.split("\n---", 1)[0] if text.startswith("---") else ""
    licence = re.search(r"^licen[sc]e:[ \t]*(\S.*)$", head, re.MULTILINE)
    listed = re.search(r"^datasets:[ \t]*\n((?:[ \t]*-[ \t]+.*\n?)+)", head, re.MULTILINE)
    names = re.findall(r"-[ \t]+(.*)", listed[1]) if listed else []
    everything = text + _text(folder / SOURCES)
    leaks = {
        corpus: [name for name, pattern in sets.items() if re.search(pattern, everything, re.IGNORECASE)]
        for corpus, sets in LEAKS.items()
    }
    return Card(
        licence[1].strip("\"' ") if licence else "",
        [name.strip("\"' ").rpartition("/")[2] for name in names],
        {corpus: sets for corpus, sets in leaks.items() if sets},
    )


def prompt_of(folder: Path, settings: Mapping[str, Any]) -> str:
    """The prompt that the encoder needs before every text, where questions are compared with questions.

    `settings` are those of PROMPTS. They name a default, or have one prompt for queries and another for texts, as E5
    does, whose card alone says so in older folders: then that for queries is put before both, as such cards advise
    where both sides are alike. Where only queries have one, it is for another use.
    """
    prompts, default = settings.get("prompts") or {}, settings.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(one, str) for one in prompts.values()):
        raise MatchloomError("prompts must be texts by their names", code="wrong_format")
    if default is not None:
        if not isinstance(default, str) or default not in prompts:
            raise MatchloomError(
                f"default_prompt_name is {str(default)[:40]!r}, which is none of the prompts", code="wrong_format"
            )
        return str(prompts[default])
    if prompts.get("query") and any(prompts.get(name) for name in ("passage", "document")):
        return str(prompts["query"])
    card = _text(folder / CARD)
    return _QUERY if not any(prompts.values()) and all(f'"{one}"' in card for one in (_QUERY, _PASSAGE)) else ""


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode(errors="replace").replace("\r\n", "\n")
    except OSError:
        return ""  # a folder need not have a card
