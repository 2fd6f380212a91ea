"""The matcher of an archive: what encodes its pairs, and whether a given one is the one that did."""

from __future__ import annotations

from pathlib import Path

from matchloom.matcher import Matcher
from matchloom.retrieval.about import About
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError


def load(matcher: Matcher | Path | str | None) -> Matcher | None:
    """A matcher, or the one in a folder."""
    return matcher if matcher is None or isinstance(matcher, Matcher) else Matcher.load(matcher)


def about_of(table: str, matcher: Matcher | None, given: Matcher | Path | str | None, tokenizer: Tokenizer) -> About:
    """The settings of a table that this matcher encodes."""
    if matcher is None:
        tokenizer("")  # an unknown kind is refused
        return About(table, tokenizer)
    where = str(Path(given).resolve()) if isinstance(given, Path | str) else None
    try:
        size = int(matcher.vectors([""]).shape[1])
    except MatchloomError:  # a model that reads both texts together
        size = None
    words = matcher.tokenizer._replace(max_words=None)
    return About(
        table, words, matcher=matcher.digest, matcher_name=matcher.name, matcher_folder=where, vector_size=size
    )


def fitting(folder: Path, about: About, given: Matcher | Path | str | None) -> Matcher | None:
    """The matcher of an archive, refused if it is not the one that made the vectors."""
    where = about.matcher_folder if given is None else given
    if about.matcher is None:
        if given is not None:
            raise MatchloomError(
                f"{folder} was indexed without a matcher; to use one: matchloom index {folder} --reencode {given}"
            )
        return None
    if where is None:
        raise MatchloomError(f"{folder} was encoded by a matcher that had no folder; give the matcher")
    if given is None and not Path(str(where)).is_dir():
        raise MatchloomError(
            f"{folder} was encoded by the matcher in {where}, which is not there; give its new place, "
            f"or another one: matchloom index {folder} --reencode MATCHER"
        )
    matcher = load(where)
    if about.vector_size is not None and matcher is not None and matcher.digest != about.matcher:
        name = where if isinstance(where, str | Path) else "MATCHER"
        raise MatchloomError(
            f"{folder} holds vectors of another matcher than {name} is now; "
            f"to encode its pairs again: matchloom index {folder} --reencode {name}"
        )
    return matcher
