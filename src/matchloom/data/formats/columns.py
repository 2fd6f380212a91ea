"""Which of a file's columns is which: by our names, by the names that others use, or as the user says."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import regex

from matchloom.basics.naming import listed, on_one_line
from matchloom.data.formats.languages import ANSWERS, QUESTIONS
from matchloom.types import MatchloomError

# Names under which a column is found; the first is our own, which is written and goes before all others. Upper and
# lower case, accents, spaces, underscores and hyphens make no difference. `score` is no label: it is what a scorer
# said. The label comes last in a written row, so that a file cut off in its last line is noticed.
COLUMNS = {
    "query_id": ("query_id", "qid", "question_id", "qid1"),
    "text_id": ("text_id", "docid", "answer_id", "pid", "passage_id", "qid2"),
    "group": ("group",),
    "query": (
        *("query", "question", "question1", "sentence1", "text1", "sentence_a", "text_a", "premise", "prompt"),
        *QUESTIONS,
    ),
    "text": (
        *("text", "answer", "document", "sentence", "passage", "question2", "sentence2", "text2", "sentence_b"),
        *("text_b", "hypothesis", "response", *ANSWERS),
    ),
    "label": ("label", "relevance", "is_duplicate"),
}
# Taken only both together, the first pair that is there, and where nothing else could be either text: questions and
# answers may have a title too.
_TOGETHER = (
    *(("q", "a"), ("title", "body"), ("title", "content"), ("title", "description_text"), ("title", "description")),
    *(("subject", "body"), ("subject", "description"), ("f", "a"), ("p", "r")),
)
# Often seen in a header, and of no use here.
_OTHERS = ("id", "idx", "index", "score", "similarity", "split", "title", "body")
# In a long name ("Frage des Kunden", "Answer (approved)") these words tell what the column is.
_TELLING = {"query": ("question", "questions", *QUESTIONS), "text": ("answer", "answers", *ANSWERS)}
_LONG_NAME = 60  # characters of a header's cell; longer ones are data
_WORDS = regex.compile(r"[\p{L}\p{M}]+")
_NO_SPACES = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]+")

Columns = Mapping[str, str]


def plain(name: str) -> str:
    """A column's name without case, accents, spaces, underscores and hyphens.

    >>> plain(" Question_ID"), plain("Réponse")
    ('questionid', 'reponse')
    """
    if not name.isascii():
        name = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return re.sub(r"[\s_-]+", "", name.casefold())


_ALIASES = {role: {plain(alias) for alias in aliases} for role, aliases in COLUMNS.items()}
_KNOWN = {plain(name) for name in _OTHERS}.union(*_ALIASES.values())
_TELLING_WORDS = {role: {plain(word) for word in words} for role, words in _TELLING.items()}


def known_names(found: Sequence[str], given: Columns | None = None) -> int:
    """How many of these are names of columns, not data."""
    known = _KNOWN | {plain(name) for name in (given or {}).values() if name}
    names = [plain(name) for name in found]
    return sum(name in known for name in names) or 2 * bool(_pair_of_names(names)) or _long_names(found)


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
        taken = columns.values()
        exact = ([i for i, n in enumerate(names) if n in wanted and i not in taken] for wanted in _wanted(role, beside))
        hits = next((hits for hits in exact if hits), [])
        if not hits and role in _TELLING:
            hits = [i for i, name in enumerate(found) if i not in taken and _told_by_a_word(name) == role]
        if len(hits) > 1:
            raise _two_for_one(where, found, role, hits)
        if hits:
            columns[role] = hits[0]
    if not columns.keys() & {"query", "text"}:
        columns |= _pair_of_names(names)
    missing = [role for role in ("query", "text") if role not in columns]
    if missing:
        raise _not_found(where, found, missing, header)
    return columns


def _wanted(role: str, beside: set[str]) -> tuple[set[str], ...]:
    return {plain(role)}, beside, _ALIASES[role]


def _pair_of_names(names: Sequence[str]) -> dict[str, int]:
    """Names such as title and body, which mean something together only."""
    for query, text in ((plain(query), plain(text)) for query, text in _TOGETHER):
        if names.count(query) == 1 and names.count(text) == 1:
            return {"query": names.index(query), "text": names.index(text)}
    return {}


def _long_names(found: Sequence[str]) -> int:
    """Two where each of these is short enough for a name and words tell both texts; else none: this may be data."""
    if any(len(name) > _LONG_NAME or name.strip()[-1:] in tuple("?!.？！。") for name in found):
        return 0
    roles = {_told_by_a_word(name) for name in found}
    return 2 if {"query", "text"} <= roles else 0


def _told_by_a_word(name: str) -> str | None:
    """The role that a word of a long name tells; None where no word does, or words tell two."""
    words = {plain(word) for word in _WORDS.findall(name)}
    if _NO_SPACES.search(name):
        words |= {word for telling in _TELLING_WORDS.values() for word in telling if len(word) > 1 and word in name}
    roles = [role for role, telling in _TELLING_WORDS.items() if words & telling]
    return roles[0] if len(roles) == 1 else None


def _named(where: str, found: Sequence[str], role: str, name: str) -> int:
    hits = [i for i, other in enumerate(found) if other == name]
    hits = hits or [i for i, other in enumerate(found) if plain(other) == plain(name)]
    if len(hits) != 1:
        there = f"is there {len(hits)} times" if hits else "is not there"
        raise MatchloomError(
            f"{where}: the column {name!r} for {role!r} {there}; found {listed(found)}", code="bad_columns"
        )
    return hits[0]


def _two_for_one(where: str, found: Sequence[str], role: str, hits: Iterable[int]) -> MatchloomError:
    names = [found[i] for i in hits]
    both, first = listed([repr(name) for name in names], " and "), on_one_line(names[0])
    return MatchloomError(
        f"{where}: {both} could each be the column {role!r}; choose with columns={{{role!r}: {first!r}}}",
        code="bad_columns",
    )


def _not_found(where: str, found: Sequence[str], missing: Sequence[str], header: bool) -> MatchloomError:
    wanted_names = " and ".join(f"{role!r} (or {', '.join(COLUMNS[role][1:5])}, ...)" for role in missing)
    first = " in the first line" if header else ""
    return MatchloomError(
        f"{where}: found the columns {listed(found)}; expected {wanted_names}{first}; "
        f"if they have other names: columns={dict.fromkeys(missing, 'NAME')}",
        code="bad_columns",
    )
