"""What is wrong with a request, in plain words: which field, and what was expected there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# What each kind of mistake is called; {} are from the mistake itself.
_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of this request; check its spelling",
    "string_type": "expected a text",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "bool_type": "expected true or false",
    "list_type": "expected a list",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "greater_than_equal": "expected {ge} or more",
    "greater_than": "expected more than {gt}",
    "less_than_equal": "expected {le} or less",
    "less_than": "expected less than {lt}",
    "string_too_short": "expected {min_length} characters or more",
    "string_too_long": "expected {max_length} characters or fewer",
    "too_short": "expected {min_length} items or more",
    "too_long": "expected {max_length} items or fewer",
    "string_pattern_mismatch": "expected a text that is not blank",
    "literal_error": "expected {expected}",
}


def first_wrong(errors: Sequence[Mapping[str, Any]]) -> str:
    """The first mistake, without the value: it may be long, or nobody's business."""
    if errors[0]["type"] == "json_invalid":
        return f"the body is not JSON: {errors[0].get('ctx', {}).get('error', 'it cannot be read')}"
    likeliest = _of_one_form(errors)
    first = likeliest[0]
    where = ".".join(_path(first["loc"]))
    several = {_words(one) for one in likeliest if _path(one["loc"]) == _path(first["loc"])}
    told = " or ".join(sorted(several)).replace(" or expected ", " or ")
    more = len({tuple(_path(one["loc"])) for one in likeliest}) - 1
    return f"{where or 'the body'}: {told}" + (f" (and {more} more)" if more else "")


def _of_one_form(errors: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """A request that may have several forms is wrong in each: the mistakes of the form that lacks least."""
    forms: dict[str, list[Mapping[str, Any]]] = {}
    for error in errors:
        name = error["loc"][1] if len(error["loc"]) > 1 else ""
        forms.setdefault(name if _is_type(name) and str(name)[:1].isupper() else "", []).append(error)
    return min(forms.values(), key=lambda own: (sum(one["type"] == "missing" for one in own), len(own)))


def _path(place: Sequence[int | str]) -> list[str]:
    """Where a mistake is, by the names that a client knows."""
    return [str(part) for part in place if part != "body" and not _is_type(part)]


def _is_type(part: int | str) -> bool:
    """Whether this names one of several types, as pydantic puts it into the place of a mistake."""
    return isinstance(part, str) and (part in ("str", "int", "float", "bool") or "[" in part or part[:1].isupper())


def _words(error: Mapping[str, Any]) -> str:
    told = _WORDS.get(error["type"])
    try:
        return str(error["msg"]) if told is None else told.format(**error.get("ctx", {}))
    except KeyError:
        return str(error["msg"])
