"""Scorers by name: `evaluate("bm25", pairs)` counts the words of the pairs' own texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from matchloom.lexical import LEXICAL, Vectors, Words, fit_scorer
from matchloom.types import MatchloomError, Scorer


def scorer_of(
    given: Scorer | str | ArrayLike,
    texts: Iterable[str],
    *,
    tokenizer: Words,
    vectors: Vectors | None = None,
    seed: int = 0,
) -> Scorer | ArrayLike:
    """The scorer of a name; a scorer, or scores, as they are. What is none of these is refused in one line."""
    if isinstance(given, str):
        if given not in LEXICAL:
            raise MatchloomError(
                f"scorer {given!r} is unknown; choose one of {', '.join(LEXICAL)}, or load what is in a folder: "
                "matchloom.load(folder)",
                code="unknown_name",
            )
        return fit_scorer(given, texts, tokenizer=tokenizer, vectors=vectors, seed=seed)
    if isinstance(given, Scorer) and not isinstance(given, type):
        return given
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, bytes):
        return given
    raise MatchloomError(
        f"scorer is {given!r:.60}; expected a Matcher, another scorer, its name, or a list of scores", code="wrong_type"
    )
