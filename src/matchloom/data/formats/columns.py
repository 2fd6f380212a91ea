"""Which of a file's columns is which: by our names, by the names that public data sets use, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from matchloom.types import MatchloomError

# Names under which a column is found; the first is our own, which is written and goes before all others. Upper and
# lower case, spaces, underscores and hyphens make no difference. `score` is no label: it is what a scorer said.
# The label comes last in a written row, so that a file cut off in its last line is noticed.
COLUMNS = {
    "query_id": ("query_id", "qid", "question_id", "qid1"),
    "text_id": ("text_id", "docid", "answer_id", "pid", "passage_id", "qid2"),
    "group": ("group",),
    "query": ("query", "question", "question1", "sentence1", "text1", "sentence_a", "text_a", "premise", "prompt"),
    "text": (
        *("text", "answer", "document", "sentence", "passage", "question2", "sentence2", "text2", "sentence_b"),
        *("text_b", "hypothesis", "response"),
    ),
    "label": ("label", "relevance", "is_duplicate"),
}
# Taken only together, and where nothing else could be either text: questions and answers may have a title too.
_LAST_RESORT = {"query": "title", "text": "body"}
# Often seen in a header, and of no use here.
_OTHERS = ("id", "idx", "index", "score", "similarity", "split")

Columns = Mapping[str, str]


def plain(name: str) -> str:
    """A column's name without case, spaces, underscores and hyphens.

    >>> plain(" Question_ID")
    'questionid'
    """
    return re.sub(r"[\s_-]+", "", name.casefold())


_ALIASES = {role: {plain(alias) for alias in aliases} for role, aliases in COLUMNS.items()}
_KNOWN = {*(plain(name) for name in (*_OTHERS, *_LAST_RESORT.values()))}.union(*_ALIASES.values())


def known_names(found: Sequence[str], given: Columns | None = None) -> int:
    """How many of these are names of columns, not data."""
    known = _KNOWN | {plain(name) for name in (given or {}).values() if name}
    return sum(plain(name) in known for name in found)


def check_given(given: Columns | None) -> None:
    """Refuse what a user says of columns that there are none of."""
    for role, name in (given or {}).items():
        if role not in COLUMNS:
            raise MatchloomError(
                f"columns: {role!r} is unknown; expected some of {', '.join(COLUMNS)}", code="unknown_name"
            )
        if not isinstance(name, str) or (not name and role in ("query", "text")):
            raise MatchloomError(f"columns: {role} is {name!r}; expected the name of a column", code="bad_columns")


def find_columns(
    where: str, found: Sequence[str], given: Columns | None = None, *, header: bool = True
) -> dict[str, int]:
    """The place of each of our columns among those found. Two that could be the same one are an error, not a guess.

    `given` names the user's column for some of ours and goes before all; an empty name leaves ours out. An id
    belongs to its text where the names say so: beside `sentence`, `sentence_id` goes before `docid`.
    """
    given = given or {}
    names = [plain(name) for name in found]
    columns = {role: _named(where, found, role, name) for role, name in given.items() if name}
    for role in ("query", "text", "label", "group", "query_id", "text_id"):
        if role in given:
            continue
        side = columns.get(role.removesuffix("_id"))
        beside = {names[side] + "id"} if role.endswith("_id") and side is not None else set()
        for wanted in ({plain(role)}, beside, _ALIASES[role]):
            hits = [i for i, name in enumerate(names) if name in wanted and i not in columns.values()]
            if hits:
                break
        if len(hits) > 1:
            both = " and ".join(repr(found[i]) for i in hits)
            raise MatchloomError(
                f"{where}: {both} could each be the column {role!r}; choose with "
                f"--columns {role}={_line(found[hits[0]])} (in Python columns={{{role!r}: ...}})",
                code="bad_columns",
            )
        if hits:
            columns[role] = hits[0]
    if not columns.keys() & {"query", "text"} and all(names.count(name) == 1 for name in _LAST_RESORT.values()):
        columns |= {role: names.index(name) for role, name in _LAST_RESORT.items()}
    missing = [role for role in ("query", "text") if role not in columns]
    if missing:
        wanted_names = " and ".join(f"{role!r} (or {', '.join(COLUMNS[role][1:5])}, ...)" for role in missing)
        first = " in the first line" if header else ""
        raise MatchloomError(
            f"{where}: found the columns {_listed(found)}; expected {wanted_names}{first}; "
            f"if they have other names: --columns {','.join(f'{role}=NAME' for role in missing)}",
            code="bad_columns",
        )
    return columns


def _named(where: str, found: Sequence[str], role: str, name: str) -> int:
    hits = [i for i, other in enumerate(found) if other == name]
    hits = hits or [i for i, other in enumerate(found) if plain(other) == plain(name)]
    if len(hits) != 1:
        there = f"is there {len(hits)} times" if hits else "is not there"
        raise MatchloomError(
            f"{where}: the column {name!r} for {role!r} {there}; found {_listed(found)}", code="bad_columns"
        )
    return hits[0]


def _listed(found: Sequence[str]) -> str:
    return ", ".join(_line(name)[:30] for name in found[:12]) + (", ..." if len(found) > 12 else "")


def _line(name: str) -> str:
    return " ".join(name.split())
