"""What every adapter is made of: a folder or an object that searches or scores, and what is told of a hit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from matchloom.artifact import load
from matchloom.types import Hit, MatchloomError, Scorer


def searchable(given: Any) -> Any:
    """What has answers of its own, with `search(question, top=...)`: a collection, what `fit` found, or a folder."""
    found = load(given) if isinstance(given, str | Path) else given
    found = getattr(found, "collection", None) or found
    if not hasattr(found, "search") or getattr(found, "kind", "") in ("lists", "pairs"):
        raise MatchloomError(
            f"{given!r} has no answers of its own to search; expected a collection or its folder", code="wrong_type"
        )
    return found


def scorer_of(given: Any) -> Scorer:
    """What scores pairs: a matcher, a collection, what `fit` found, a lexical scorer, or a folder of one."""
    found = load(given) if isinstance(given, str | Path) else given
    if not hasattr(found, "score"):
        found = getattr(found, "matcher", None)  # of an archive
    if found is None or not hasattr(found, "score"):
        raise MatchloomError(f"{given!r} scores no pairs; expected a scorer or its folder", code="wrong_type")
    return cast(Scorer, found)


def metadata_of(hit: Hit) -> dict[str, Any]:
    """What is told of an answer beside its text: your own columns, and how it was found."""
    about = {"id": hit.id, "score": hit.score, "probability": hit.probability, "question": hit.question}
    return {**(hit.columns or {}), **about}
