"""Scorers without a network. LEXICAL names them all; every table of results starts with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from matchloom.lexical.bm25 import BM25
from matchloom.lexical.collection import ENGLISH, Collection, Words
from matchloom.lexical.overlap import Overlap
from matchloom.lexical.random_scorer import RandomScorer
from matchloom.lexical.soft_coverage import SoftCoverage, Vectors
from matchloom.types import MatchloomError, Scorer

__all__ = ["BM25", "LEXICAL", "Collection", "Overlap", "RandomScorer", "SoftCoverage", "Vectors", "Words", "fit_scorer"]


def _soft_coverage(texts: Iterable[str], words: Words, vectors: Vectors | None, seed: int) -> Scorer:
    if vectors is None:
        raise MatchloomError("soft_coverage needs word vectors and none were given; pass vectors or choose bm25")
    return SoftCoverage.fit(texts, vectors, tokenizer=words)


LEXICAL: dict[str, Callable[[Iterable[str], Words, Vectors | None, int], Scorer]] = {
    "random": lambda texts, words, vectors, seed: RandomScorer(seed),
    "overlap": lambda texts, words, vectors, seed: Overlap.fit(texts, tokenizer=words),
    "bm25": lambda texts, words, vectors, seed: BM25.fit(texts, tokenizer=words),
    "bm25_stemmed": lambda texts, words, vectors, seed: BM25.fit(texts, tokenizer=words, stem=True, stop_words=True),
    "soft_coverage": _soft_coverage,
}


def fit_scorer(
    name: str, texts: Iterable[str], *, tokenizer: Words = ENGLISH, vectors: Vectors | None = None, seed: int = 0
) -> Scorer:
    """The lexical scorer of this name, its word statistics taken from `texts`.

    >>> fit_scorer("bm25", ["a loom weaves cloth", "a mill grinds corn"]).name
    'bm25'
    """
    if name not in LEXICAL:
        raise MatchloomError(f"lexical scorer {name!r} is unknown; choose one of {', '.join(LEXICAL)}")
    return LEXICAL[name](texts, tokenizer, vectors, seed)
