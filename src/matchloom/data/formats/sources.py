"""Pairs from whatever a Python user has: pairs, tuples, dicts, data frames, or the path of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from matchloom.basics.extras import need
from matchloom.data.formats.columns import Columns, check_given, find_columns
from matchloom.data.formats.pairs import read_rows
from matchloom.data.formats.parquet import table_rows
from matchloom.data.formats.records import NamedRows
from matchloom.data.formats.row import Row
from matchloom.data.formats.shards import find_shards
from matchloom.data.formats.values import label_of, pair_of, short
from matchloom.types import MatchloomError, Pair

_EXPECTED = "a Pair, (query, text), (query, text, label) or a dict with the columns query and text"


@runtime_checkable
class DataFrame(Protocol):
    """A table of pandas (2.2 or newer), polars, duckdb or pyarrow: whatever speaks Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a stream of Arrow's record batches."""
        ...


PairLike = Pair | tuple[str, str] | tuple[str, str, float | None] | Mapping[str, Any]
PairsLike = str | Path | DataFrame | Iterable[PairLike] | Sequence[str | Path]  # the last: paths of Parquet shards


def as_pairs(source: PairsLike, *, columns: Columns | None = None, graded: bool = False) -> Iterator[Pair]:
    """Yield the pairs of a source: a path, paths of Parquet shards, a data frame, or pairs, tuples and dicts.

    Names of columns, `columns` and `graded` are those of read_pairs. Ids stay empty where there are none: see with_ids.
    A Pair is passed on as it is, if its label is one. What is none of these is told by its number, what it is and what
    was expected.

    >>> next(as_pairs([("how do I knit?", "with two needles", True)]))[:3]
    ('how do I knit?', 'with two needles', 1.0)
    >>> next(as_pairs([{"Question": "how do I knit?", "Answer": "with two needles"}]))[:3]
    ('how do I knit?', 'with two needles', None)
    """
    return (pair for pair, _ in as_rows(source, columns=columns, graded=graded))


def as_rows(
    source: PairsLike, *, columns: Columns | None = None, graded: bool = False, whole: bool = False
) -> Iterator[tuple[Pair, Row]]:
    """Yield the pairs of a source, each with the row that it was made of; the user's own columns only if `whole`."""
    check_given(columns)
    if isinstance(source, str | Path):
        return read_rows(source, columns=columns, graded=graded, whole=whole)
    if isinstance(source, list | tuple) and (shards := find_shards(source, columns)) is not None:
        return shards.chain(lambda one: read_rows(one, columns=columns, graded=graded, whole=whole))
    if isinstance(source, DataFrame):
        return _of_table(source, columns, graded, whole)
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise MatchloomError(
            f"pairs: found {_kind(source)}; expected {_EXPECTED}, many of them in a list", code="wrong_type"
        )
    if hasattr(source, "to_dict") and hasattr(source, "columns"):
        raise MatchloomError(
            "pairs: this data frame is too old to be read; give frame.to_dict('records')", code="wrong_type"
        )
    return _of_items(source, columns, graded)


def scorable(pairs: PairsLike) -> Sequence[Pair]:
    """Pairs of any source, for who does not look at labels; those that are Pairs in a list already stay as they are."""
    if isinstance(pairs, list | tuple) and all(
        isinstance(one, Pair) and isinstance(one.query, str) and isinstance(one.text, str) for one in pairs
    ):
        return pairs
    if isinstance(pairs, str):
        raise MatchloomError(
            f"pairs is the text {short(pairs)}; expected score(query, text), or a list of pairs", code="wrong_type"
        )
    return list(as_pairs(pairs, graded=True))


def _of_items(items: Iterable[Any], columns: Columns | None, graded: bool) -> Iterator[tuple[Pair, Row]]:
    named = NamedRows("pairs", columns)
    for number, item in enumerate(items, start=1):
        place = f"item {number}"
        if isinstance(item, Pair):
            if not isinstance(item.query, str) or not isinstance(item.text, str):
                raise MatchloomError(f"pairs, {place}: query or text of {short(item)} is no text", code="bad_row")
            if item.label not in (None, 0, 1):
                label_of(f"pairs, {place}", item.label, graded=graded)
            yield item, Row(place, {})
            continue
        if hasattr(item, "_asdict"):  # a row of DataFrame.itertuples, or any named tuple
            item = item._asdict()
        if isinstance(item, Mapping):
            if not all(isinstance(key, str) for key in item):
                raise MatchloomError(
                    f"pairs, {place}: the keys are {short(list(item))}; expected names of columns", code="bad_columns"
                )
            row = named.row(place, item)
        elif isinstance(item, tuple | list) and len(item) in (2, 3):
            row = Row(place, dict(zip(("query", "text", "label"), item, strict=False)))
        else:
            raise MatchloomError(f"pairs, {place}: found {_kind(item)}; expected {_EXPECTED}", code="bad_row")
        yield pair_of(f"pairs, {place}", row.values, graded=graded), row


def _of_table(table: DataFrame, columns: Columns | None, graded: bool, whole: bool) -> Iterator[tuple[Pair, Row]]:
    pyarrow = need("pyarrow", "a data frame")
    try:
        reader = pyarrow.RecordBatchReader.from_stream(table)
        known = find_columns("table", reader.schema.names, columns, header=False).values()
        wanted = list(range(len(reader.schema.names))) if whole else sorted(known)
        names = [reader.schema.names[i] for i in wanted]
        batches = (batch.select(wanted) for batch in reader)  # of what is not needed nothing is made
        for row in table_rows("table", names, batches, columns):
            yield pair_of(f"table, {row.place}", row.values, graded=graded), row
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]
        raise MatchloomError(f"table: it cannot be read by Arrow: {reason}", code="wrong_type") from None


def _kind(value: object) -> str:
    name = type(value).__name__
    if isinstance(value, tuple | list):
        return f"a {name} of {len(value)}"
    return f"{'nothing' if value is None else f'{name} {short(value)}'}"
