"""Entries as a table: searched, filtered, sorted, a page at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matchloom.data.entries import Entry
from matchloom.data.identity import normalize_text
from matchloom.service.desk.edits import version_of

if TYPE_CHECKING:
    from matchloom.search.entries import Entries

_VALUES, _COLUMNS = 50, 20  # values of a column, and columns, by which can be filtered
SORTS = ("id", "text", "questions")


def plain(entry: Entry) -> dict[str, Any]:
    """An entry as clients see it."""
    return {
        "id": entry.id,
        "text": entry.text,
        "questions": list(entry.questions),
        "columns": dict(entry.columns),
        "version": version_of(entry),
    }


def listed(
    entries: Entries, search: str, where: Mapping[str, str], sort: str, offset: int, limit: int
) -> dict[str, Any]:
    """The entries with every word of `search` in their id, text or questions, and these values in their columns."""
    words = normalize_text(search).split()
    rows = [n for n in range(len(entries)) if _fits(entries, n, words, where)]
    key, down = sort.removeprefix("-"), sort.startswith("-")
    if key == "text":
        rows.sort(key=lambda n: normalize_text(entries.texts[n]), reverse=down)
    elif key == "questions":
        rows.sort(key=lambda n: len(entries.questions[n]), reverse=down)
    elif down:
        rows.reverse()
    found = [plain(entries[n]) for n in rows[offset : offset + limit]]
    return {"total": len(rows), "all": len(entries), "entries": found, "filters": filters(entries)}


def _fits(entries: Entries, n: int, words: list[str], where: Mapping[str, str]) -> bool:
    own = entries.columns[n] if entries.columns else {}
    if any(own.get(name) != value for name, value in where.items()):
        return False
    if not words:
        return True
    said = normalize_text(" ".join((entries.ids[n], entries.texts[n], *entries.questions[n])))
    return all(word in said for word in words)


def filters(entries: Entries) -> dict[str, list[str]]:
    """The columns by which entries can be told apart, and the values that come most often."""
    counts: dict[str, Counter[str]] = {}
    for own in entries.columns or ():
        for name, value in own.items():
            if len(value) <= 60:
                counts.setdefault(name, Counter())[value] += 1
    few = {name: count for name, count in counts.items() if 1 < len(count) <= _VALUES and max(count.values()) > 1}
    return {name: [value for value, _ in count.most_common()] for name, count in list(few.items())[:_COLUMNS]}
