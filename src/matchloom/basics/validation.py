"""What a caller gave where a text, many texts or a name was wanted: itself, or one line that names the argument."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

from matchloom.types import MatchloomError, Pair


def one_text(name: str, value: object) -> str:
    """A text.

    >>> one_text("query", "who weaves")
    'who weaves'
    """
    if not isinstance(value, str):
        raise MatchloomError(f"{name} is {shown(value)}; expected a text", code="wrong_type")
    return value


def many_texts(name: str, value: object) -> list[str]:
    """Texts, from whatever holds some; a single text is refused, which would be many letters.

    >>> many_texts("candidates", iter(["a loom", "a mill"]))
    ['a loom', 'a mill']
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise MatchloomError(f"{name} is {shown(value)}; expected a list of texts", code="wrong_type")
    texts = list(value)
    for number, one in enumerate(texts, start=1):
        if not isinstance(one, str):
            raise MatchloomError(f"{name}, item {number}: found {shown(one)}; expected a text", code="bad_row")
    return texts


def plain_pairs(value: object) -> Sequence[Pair]:
    """Pairs, also where they are given as (query, text); for files, dicts and frames see data/formats.

    >>> plain_pairs([("who weaves", "a loom")])
    [Pair(query='who weaves', text='a loom', label=None, query_id='', text_id='', group='')]
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise MatchloomError(
            f"pairs is {shown(value)}; expected a list of pairs, or score(query, text)", code="wrong_type"
        )
    pairs = value if isinstance(value, list | tuple) else list(value)
    if all(isinstance(one, Pair) for one in pairs):
        return pairs
    found = []
    for number, one in enumerate(pairs, start=1):
        if not isinstance(one, tuple | list) or len(one) < 2 or not all(isinstance(side, str) for side in one[:2]):
            raise MatchloomError(
                f"pairs, item {number}: found {shown(one)}; expected a Pair or (query, text)", code="bad_row"
            )
        found.append(one if isinstance(one, Pair) else Pair(one[0], one[1]))
    return found


def one_path(name: str, value: object) -> Path:
    """The name of a file or folder."""
    if not isinstance(value, str | PathLike) or isinstance(value, bytes):
        raise MatchloomError(f"{name} is {shown(value)}; expected the name of a file or folder", code="wrong_type")
    return Path(value)


def at_least_one(name: str, value: object) -> None:
    """Refuse what is no count."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise MatchloomError(f"{name} is {shown(value)}; expected a number of at least 1", code="bad_value")


def shown(value: object) -> str:
    """A value for an error's one line."""
    line = " ".join(repr(value).split())
    return line if len(line) <= 60 else f"{line[:60]}..."
