"""Thumbs up and down of answers that are served: what a request says, checked, as a judgement that is kept."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from matchloom.data.identity import normalize_text
from matchloom.search.feedback import FeedbackFile, Judgement
from matchloom.service.problems import Refused
from matchloom.service.systems import ServedSystem

if TYPE_CHECKING:
    from matchloom.search.collection import Collection
    from matchloom.service.schemas import FeedbackRequest

__all__ = ["FeedbackFile", "judgement_of"]


def judgement_of(system: ServedSystem, asked: FeedbackRequest) -> Judgement:
    """The judgement of a request; an id that nothing has, or a text that is not that id's, is refused."""
    if not system.searches:
        raise Refused(422, "cannot_judge", f"{system.name} has no answers of its own to judge")
    name = _id_of(system, asked.id, asked.text)
    return Judgement(asked.question, name, asked.label == 1, asked.who, time.time(), system.name)


def _id_of(system: ServedSystem, name: str, text: str) -> str:
    """The id of an answer; where its text is all that is given, of the one that has it."""
    same = normalize_text(text)
    if system.collection is not None:
        name, answers = _entry(system.collection, name, text if same else "")
    else:
        assert system.index is not None  # it searches
        name = name or (system.index.find(text) or "" if same else "")
        answers = system.index.answers(name) if name else []
    if not answers:
        raise Refused(404, "unknown", f"{system.name} has no answer with the id {name[:80]!r}, or with that text")
    if same and same not in map(normalize_text, answers):
        raise Refused(409, "mismatch", f"the answer {name[:80]!r} of {system.name} has another text")
    return name


def _entry(collection: Collection, name: str, text: str) -> tuple[str, list[str]]:
    """The id of an entry and its texts, of which the given one may be another spelling."""
    known = collection.find(text) if text else None
    if name and name not in collection:
        return name, []
    found = collection[name] if name else known
    if found is None:
        return name, []
    return found.id, [found.text, *([text] if known is not None and known.id == found.id else [])]
