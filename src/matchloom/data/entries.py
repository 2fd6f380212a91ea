"""Entries of a collection: an answer, the questions that it answers, and the user's own columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from matchloom.data.identity import digest, local_ids, normalize_text, same_answers, spellings
from matchloom.types import MatchloomError, Pair

if TYPE_CHECKING:  # pyarrow comes with them, which a search need not wait for
    from matchloom.data.formats.columns import Columns
    from matchloom.data.formats.sources import PairsLike

_NONE: Mapping[str, str] = MappingProxyType({})


class Entry(NamedTuple):
    """An answer with all that is known of it.

    Args:
        id: Its text_id, or a digest of its text where the source has none.
        text: The answer.
        questions: The questions that it answers, each once; none where nobody has asked yet.
        columns: The user's own columns, such as url or category; those without a value are left out.
    """

    id: str
    text: str
    questions: tuple[str, ...] = ()
    columns: Mapping[str, str] = _NONE


def read_entries(source: PairsLike, *, columns: Columns | None = None) -> list[Entry]:
    """The entries of a file, a data frame, or pairs, tuples and dicts, in the order in which they first appear.

    Args:
        source: What `as_pairs` takes.
        columns: Which of the source's columns is which of ours, as for `read_pairs`.
    """
    from matchloom.data.formats.sources import as_rows
    from matchloom.data.formats.values import own_columns

    return entries_of((pair, own_columns(row)) for pair, row in as_rows(source, columns=columns, whole=True))


def entries_of(rows: Iterable[tuple[Pair, Mapping[str, str]]]) -> list[Entry]:
    """The entries of pairs and their own columns: of pairs with a label above 0, or none.

    Pairs that share a text_id or a text (but for case and spaces) are one entry; texts alone decide where text_ids do
    not name answers (`data/identity.py`). What an entry holds depends on its pairs and not on their order: its least
    id, its most frequent text, each question once, the most frequent value of each column.

    >>> entries_of([(Pair("Lost it", "Write to us."), {"topic": "keys"}), (Pair("Stolen", "write to us."), {})])
    [Entry(id='7d92e7d411aa8a73', text='Write to us.', questions=('Lost it', 'Stolen'), columns={'topic': 'keys'})]
    """
    right = [(pair, own) for pair, own in rows if pair.is_positive]
    if not right:
        raise MatchloomError("entries are made of pairs with label 1 or none, and there are none", code="no_data")
    if local_ids(pair for pair, _ in right):
        right = [(pair._replace(text_id=""), own) for pair, own in right]
    members: dict[int, list[tuple[Pair, Mapping[str, str]]]] = {}
    for row, answer in zip(right, same_answers([pair for pair, _ in right]), strict=True):
        members.setdefault(answer, []).append(row)
    spelt = spellings(pair.query for pair, _ in right)
    return [_entry(own, spelt) for own in members.values()]


def _entry(rows: list[tuple[Pair, Mapping[str, str]]], spelt: Mapping[str, str]) -> Entry:
    ids = sorted({pair.text_id for pair, _ in rows} - {""})
    text = _most_frequent(pair.text for pair, _ in rows)
    questions = sorted({spelt[normalize_text(pair.query)] for pair, _ in rows} - {""})
    names = dict.fromkeys(name for _, own in rows for name in own)
    columns = {name: _most_frequent(own[name] for _, own in rows if name in own) for name in names}
    return Entry(ids[0] if ids else digest(normalize_text(text)), text, tuple(questions), columns)


def _most_frequent(values: Iterable[str]) -> str:
    """Of those that are as frequent, the least."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))
