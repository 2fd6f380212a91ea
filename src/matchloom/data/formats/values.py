"""A row's values into a pair: what is no text, label or id is told in one line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

from matchloom.data.formats.row import Row
from matchloom.types import MatchloomError, Pair

_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def pair_of(where: str, row: Mapping[str, Any], *, graded: bool = False) -> Pair:
    """The pair of a row that has our names for its values."""
    pair = Pair(
        _text(where, "query", row["query"]),
        _text(where, "text", row["text"]),
        label_of(where, row.get("label"), graded=graded),
        _id(where, "query_id", row.get("query_id")),
        _id(where, "text_id", row.get("text_id")),
        _id(where, "group", row.get("group")),
    )
    if not pair.query.strip() and not pair.text.strip():
        raise MatchloomError(f"{where}: query and text are both empty; remove the row", code="bad_row")
    return pair


def own_columns(row: Row) -> dict[str, str]:
    """The user's own columns of a row as texts: all that is none of ours and has a value."""
    known = set(row.known.values())
    own = zip(row.own.names, row.own.values, strict=True)
    texts = {name: as_text(value) for i, (name, value) in enumerate(own) if name and i not in known}
    return {name: text for name, text in texts.items() if text}


def as_text(value: object) -> str:
    """A cell's value as a text: dates by ISO 8601, lists and objects as JSON, nothing as nothing.

    >>> as_text(3.0), as_text(None), as_text(["a", "b"])
    ('3', '', '["a", "b"]')
    """
    value = _builtin(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list | dict | bool):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def label_of(where: str, value: object, *, graded: bool = False) -> float | None:
    """A label: 0, 1, a whole number above, or a word for one of the first two; any number from 0 if `graded`.

    Labels below 0 are refused: whether -1 means "wrong" (as in support vector machines) or "not judged" (as in the
    test sets of GLUE) is for the user to say.
    """
    number = number_of(value)
    if number is None:
        return None
    if not math.isfinite(number):
        raise MatchloomError(
            f"{where}: label is {short(value)}; expected a number, yes, no, true or false", code="bad_row"
        )
    if number < 0:
        raise MatchloomError(
            f"{where}: label is {short(value)}; labels start at 0: write 0 if the text is wrong, nothing if "
            "that is not known",
            code="bad_row",
        )
    if not graded and number != int(number):
        raise MatchloomError(
            f"{where}: label is {short(value)}; expected 1 (right), 0 (wrong) or a whole number; grades between them "
            "are for training with squared_error only",
            code="bad_row",
        )
    return number


def number_of(value: object) -> float | None:
    """A label's number, None for no label, NaN for what is neither."""
    value = _builtin(value)
    word = value.strip().lower() if isinstance(value, str) else value
    if word is None or word == "":
        return None
    if isinstance(word, str) and word in _WORDS:
        return _WORDS[word]
    try:
        return float(word) if isinstance(word, str | int | float | Decimal) and "_" not in str(word) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def short(value: object) -> str:
    """A value for an error's one line."""
    return "missing" if value is None else repr(value)[:60]


def _text(where: str, name: str, value: object) -> str:
    if not isinstance(value, str):
        raise MatchloomError(f"{where}: {name} is {short(value)}; expected a text", code="bad_row")
    return value


def _id(where: str, name: str, value: object) -> str:
    value = _builtin(value)
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():  # whole numbers, some missing, are floats in a data frame
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise MatchloomError(f"{where}: {name} is {short(value)}; expected a text or a whole number", code="bad_row")
    return str(value)


def _builtin(value: object) -> object:
    """NumPy's numbers as Python's."""
    return value.item() if hasattr(value, "dtype") and getattr(value, "shape", None) == () else value  # type: ignore[attr-defined]
