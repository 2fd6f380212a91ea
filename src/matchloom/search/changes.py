"""What a user gives, as a change of a view: entries to put, each as it is from now on, and ids to remove."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from matchloom.data.entries import Entry
from matchloom.data.identity import digest, normalize_text
from matchloom.data.unanswerable import is_blank
from matchloom.search.entries import Entries
from matchloom.search.journal import Change
from matchloom.search.view import View
from matchloom.types import MatchloomError, Pair

if TYPE_CHECKING:
    from matchloom.data.formats import PairsLike
    from matchloom.data.formats.columns import Columns


def entries_of(pairs: PairsLike, columns: Columns | None = None) -> Entries:
    """The entries of pairs, with the user's own columns."""
    rows = list(rows_of(pairs, columns))
    return Entries.of([pair for pair, _ in rows], [own for _, own in rows])


def rows_of(pairs: PairsLike, columns: Columns | None) -> Iterator[tuple[Pair, Mapping[str, str]]]:
    """Pairs, and the user's own columns of each."""
    from matchloom.data.formats.sources import as_rows
    from matchloom.data.formats.values import own_columns

    return ((pair, own_columns(row)) for pair, row in as_rows(pairs, columns=columns, whole=True))


def added(view: View, entries: Entries) -> tuple[Change, int]:
    """Entries to put: new ones, and those that are there with more questions. How many are new."""
    new = 0
    put: dict[str, Entry] = {}
    for n in range(len(entries)):
        entry = entries[n]
        row = view.row_of(entry.id)
        row = view.row_of_text(entry.text) if row is None else row
        new += row is None
        old = entry if row is None else view.entry(row)
        put[old.id] = entry if row is None else _joined(put.get(old.id, old), entry)
    return Change(list(put.values())), new


def removed(view: View, ids: Iterable[str]) -> Change:
    """Those of the ids that are there, to be removed; a collection keeps one entry."""
    rows = {row for name in ids if (row := view.row_of(name)) is not None}
    gone = [view.entry(row).id for row in sorted(rows)]
    if len(gone) == len(view):
        raise MatchloomError("a collection keeps one entry at least; remove its folder instead", code="no_data")
    return Change((), gone)


def checked(entry: Entry) -> Entry:
    """An entry that can be put."""
    if not (isinstance(entry.id, str) and entry.id and isinstance(entry.text, str) and not is_blank(entry.text)):
        raise MatchloomError(f"the entry {str(entry)[:80]!r} lacks an id or a text", code="bad_row")
    return Entry(entry.id, entry.text, tuple(dict.fromkeys(entry.questions)), dict(entry.columns))


def _joined(old: Entry, new: Entry) -> Entry:
    """An entry that is there with more questions, and with the new text where its id says that it is the same."""
    known = {normalize_text(question) for question in old.questions}
    questions = [*old.questions, *(one for one in new.questions if normalize_text(one) not in known)]
    own_id = new.id == old.id and new.id != digest(
        normalize_text(new.text)
    )  # else the text itself was all that was known
    text = new.text if own_id else old.text
    return Entry(old.id, text, tuple(sorted(questions)), {**old.columns, **new.columns})
