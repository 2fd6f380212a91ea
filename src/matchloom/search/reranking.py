"""Any texts by falling relevance, whatever scores them: what a reranker does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from matchloom.calibration import relevance
from matchloom.lexical import fit_scorer
from matchloom.types import Pair, Ranked, Ranking, Scorer


class Reranked(NamedTuple):
    """A text: where it stood, its score, and its relevance between 0 and 1 (`calibration.relevance`)."""

    index: int  # type: ignore[assignment]
    score: float
    relevance: float
    text: str


def rerank(scorer: Scorer, query: str, texts: Sequence[str], *, top: int | None = None) -> list[Reranked]:
    """The texts, the most relevant first; equal scores are ordered by text.

    Args:
        scorer: What scores. Where it knows its own answers only, BM25 with the words of these texts takes its place.
        query: What they are to be relevant to.
        texts: Any texts.
        top: At most this many; None for all.
    """
    used = scorer if ranks_any_text(scorer) else bm25_of(texts)
    found = ranked(used, query, texts, top)
    likely = relevance(used, np.array([one.score for one in found], np.float32)).tolist()
    return [Reranked(one.index, one.score, value, one.text) for one, value in zip(found, likely, strict=True)]


def ranked(scorer: Scorer, query: str, texts: Sequence[str], top: int | None) -> Ranking:
    """The texts by falling score."""
    return by_scores(scorer.score([Pair(query, text) for text in texts]).tolist(), texts, top)


def by_scores(scores: Sequence[float], texts: Sequence[str], top: int | None) -> Ranking:
    """The texts by these scores; equal ones are ordered by text."""
    best = sorted(range(len(texts)), key=lambda n: (-scores[n], texts[n]))[:top]
    return Ranking(Ranked(n, scores[n], texts[n]) for n in best)


def bm25_of(texts: Sequence[str]) -> Scorer:
    """Stemmed BM25, whose words are counted in the texts that it ranks."""
    return fit_scorer("bm25_stemmed", texts or [""])


def ranks_any_text(scorer: Any) -> bool:
    """Whether it tells texts apart that it has never seen; a baseline over a collection's own answers does not."""
    inner = getattr(scorer, "scorer", scorer)  # of a fitted system
    return getattr(getattr(inner, "settings", None), "baseline", None) is None
