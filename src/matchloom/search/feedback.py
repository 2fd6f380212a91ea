"""Judgements: people say of an answer that it is right for a question, or wrong. Kept in a file that only grows.

    {"question": ..., "id": ..., "label": 1, "who": ..., "time": 1750000000.0, "system": ...}

One line each (`basics/growing.py`). Lines of earlier versions (query, text, text_id) are read, too. What judgements
teach is in `judged.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matchloom.basics.files import is_there
from matchloom.basics.growing import LONGEST, Announce, GrowingFile
from matchloom.text.tokenize import replace_surrogates
from matchloom.types import MatchloomError

_MOST = 2**28  # bytes of a file
_NEW = {"question", "id", "label", "time"}
_OLD = {"query", "text", "label", "text_id", "system"}


class Judgement(NamedTuple):
    """That an entry is right for a question, or wrong. Without a name in `who` it is nobody's in particular."""

    question: str
    id: str
    right: bool
    who: str = ""
    time: float = 0.0  # seconds since 1970
    system: str = ""  # the name under which the collection was served
    text: str = ""  # of the entry, where a line of an earlier version has no id

    def to_json(self) -> dict[str, Any]:
        """As the file has it."""
        own = {"question": self.question, "id": self.id, "label": int(self.right), "who": self.who}
        return {**own, "time": round(self.time, 3), "system": self.system}


class Judgements(NamedTuple):
    """What a file holds, and what is damaged in it: the file, the line and the reason."""

    judgements: list[Judgement]
    damaged: list[str]

    def of_system(self, name: str, *, alone: bool = False) -> Judgements:
        """Those of one collection, where the file has judgements of several, or where only its own are wanted."""
        if alone:
            return Judgements([one for one in self.judgements if one.system in ("", name)], self.damaged)
        served = {one.system for one in self.judgements} - {""}
        if len(served) < 2:
            return self
        if name not in served:
            raise MatchloomError(
                f"the judgements are of {len(served)} systems ({', '.join(sorted(served))[:200]}), and none is "
                f"{name!r}; keep the lines of one",
                code="mismatch",
            )
        return Judgements([one for one in self.judgements if one.system in ("", name)], self.damaged)


class _Line(msgspec.Struct):
    label: float
    question: str = ""
    id: str = ""
    who: str = ""
    time: float = 0.0
    system: str = ""
    query: str = ""
    text: str = ""
    text_id: str = ""


def read_feedback(path: Path | str) -> Judgements:
    """The judgements of a file, in its order. Damaged lines are left out and named; a file of nothing else is refused.

    Args:
        path: What `matchloom serve --feedback` wrote.
    """
    file = FeedbackFile(path)
    if not file.path.exists():
        raise MatchloomError(f"{path} cannot be read: No such file or directory", code="unreadable")
    file.check_size()
    found, damaged = [], []
    for line in file.lines():
        try:
            found.append(_judgement(line.content))
        except ValueError as error:
            damaged.append(f"{path}, line {line.number}: {error}")
    if damaged and not found:
        raise MatchloomError(f"{damaged[0]}; expected judgements that 'matchloom serve' kept", code="bad_row")
    return Judgements(found, damaged)


def is_feedback(path: Path | str) -> bool:
    """Whether a file holds judgements, by its first line; nothing is refused here."""
    path = Path(path)
    if not is_there(path) or not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            first = json.loads(stream.readline(LONGEST))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and (first.keys() >= _NEW or first.keys() == _OLD)


class FeedbackFile(GrowingFile):
    """A file that grows by one line for each judgement."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path, "judgement", most=_MOST, whole=_whole)

    def keep(self, judgement: Judgement, announce: Announce | None = None) -> None:
        """Append one line, whole: it is on the disk when this returns, or the file is as it was."""
        self.append(judgement.to_json(), announce=announce)


def _whole(line: bytes) -> bool:
    try:
        _judgement(line)
    except ValueError:
        return False
    return True


def _judgement(line: bytes) -> Judgement:
    """The judgement of a line; a ValueError says what is wrong."""
    if len(line) > LONGEST:
        raise ValueError(f"longer than {LONGEST:,} bytes")
    try:
        found = msgspec.json.decode(line, type=_Line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no judgement: {str(error)[:120]}") from None
    question, name = found.question or found.query, found.id or found.text_id
    if found.label not in (0, 1):
        raise ValueError(f"label is {found.label:g}; expected 1 or 0")
    if not question.strip() or not (name or found.text.strip()):
        raise ValueError("no question or no answer")
    return Judgement(
        replace_surrogates(question), name, found.label == 1, found.who, found.time, found.system, found.text
    )


def as_judgements(feedback: Path | str | Judgements | Iterable[Judgement]) -> Judgements:
    """Judgements, or those of a file."""
    if isinstance(feedback, str | Path):
        return read_feedback(feedback)
    return feedback if isinstance(feedback, Judgements) else Judgements(list(feedback), [])
