"""Scorers without a network. LEXICAL names them all; every table of results starts with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from matchloom.lexical.bm25 import BM25
from matchloom.lexical.overlap import Overlap
from matchloom.lexical.random_scorer import RandomScorer
from matchloom.lexical.soft_coverage import SoftCoverage, Vectors
from matchloom.lexical.statistics import ENGLISH, Words, WordStatistics
from matchloom.lexical.trans_lm import TransLM
from matchloom.types import MatchloomError, Pair, Scorer

__all__ = [
    "BM25",
    "LEXICAL",
    "WordStatistics",
    "Overlap",
    "RandomScorer",
    "SoftCoverage",
    "TransLM",
    "Vectors",
    "Words",
    "fit_scorer",
]


class Given(NamedTuple):
    """All that a scorer may be fitted on."""

    texts: Iterable[str]
    words: Words
    vectors: Vectors | None
    pairs: Iterable[Pair] | None
    seed: int


def _soft_coverage(given: Given) -> Scorer:
    if given.vectors is None:
        raise MatchloomError(
            "soft_coverage needs word vectors and none were given; pass vectors or choose bm25", code="no_data"
        )
    return SoftCoverage.fit(given.texts, given.vectors, tokenizer=given.words)


def _trans_lm(given: Given) -> Scorer:
    if given.pairs is None:
        raise MatchloomError(
            "trans_lm needs positive pairs to learn translations from and none were given; pass pairs, or the file "
            "that 'matchloom trans-lm' makes of them",
            code="no_data",
        )
    return TransLM.fit(given.texts, given.pairs, tokenizer=given.words)


LEXICAL: dict[str, Callable[[Given], Scorer]] = {
    "random": lambda given: RandomScorer(given.seed),
    "overlap": lambda given: Overlap.fit(given.texts, tokenizer=given.words),
    "bm25": lambda given: BM25.fit(given.texts, tokenizer=given.words),
    "bm25_stemmed": lambda given: BM25.fit(given.texts, tokenizer=given.words, stem=True, stop_words=True),
    "soft_coverage": _soft_coverage,
    "trans_lm": _trans_lm,
}


def fit_scorer(
    name: str,
    texts: Iterable[str],
    *,
    tokenizer: Words = ENGLISH,
    vectors: Vectors | None = None,
    pairs: Iterable[Pair] | None = None,
    seed: int = 0,
) -> Scorer:
    """The lexical scorer of this name, its word statistics taken from `texts`.

    soft_coverage also needs word `vectors`, and trans_lm right `pairs` to learn translations from.

    >>> fit_scorer("bm25", ["a loom weaves cloth", "a mill grinds corn"]).name
    'bm25'
    """
    if name not in LEXICAL:
        raise MatchloomError(
            f"lexical scorer {name!r} is unknown; choose one of {', '.join(LEXICAL)}", code="unknown_name"
        )
    return LEXICAL[name](Given(texts, tokenizer, vectors, pairs, seed))
