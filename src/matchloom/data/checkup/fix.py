"""A file without what can be put right by itself; contradictions are for its owner to decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from matchloom.data.checkup.finds import Placed
from matchloom.data.formats.html_text import has_tags, html_text
from matchloom.data.formats.row import Row
from matchloom.data.formats.values import own_columns
from matchloom.data.identity import normalize_text
from matchloom.types import Pair


class Fixed(NamedTuple):
    """The rows that are left, and how many were removed or changed, by what was done."""

    rows: list[tuple[Pair, dict[str, str]]]
    done: dict[str, int]


def fix_rows(rows: Sequence[tuple[Pair, Row]], test: Iterable[Placed], unreadable: int = 0) -> Fixed:
    """Tags removed, rows with an empty side, repeated rows and questions of the test removed.

    Args:
        rows: Pairs with their rows.
        test: Pairs to measure on.
        unreadable: How many rows could not be read, and are not among these.
    """
    done = {"unreadable": unreadable, "html": 0, "blank": 0, "duplicate": 0, "test_in_training": 0}
    asked = {normalize_text(pair.query) for pair, _ in test} - {""}
    seen: set[tuple[str, str, float | None]] = set()
    kept = []
    for pair, row in rows:
        plain = pair._replace(query=_plain(pair.query), text=_plain(pair.text))
        done["html"] += plain != pair
        key = (normalize_text(plain.query), normalize_text(plain.text), plain.label)
        reason = _reason(key, seen, asked)
        if reason is None:
            seen.add(key)
            kept.append((plain, own_columns(row)))
        else:
            done[reason] += 1
    return Fixed(kept, {name: count for name, count in done.items() if count})


def _reason(
    key: tuple[str, str, float | None], seen: set[tuple[str, str, float | None]], asked: set[str]
) -> str | None:
    """Why a row is removed; None for one that stays."""
    if not key[0] or not key[1]:
        return "blank"
    if key in seen:
        return "duplicate"
    return "test_in_training" if key[0] in asked else None


def _plain(text: str) -> str:
    return html_text(text) if has_tags(text) else text
