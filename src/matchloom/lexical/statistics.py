"""What a collection of texts says about its words: in how many texts each occurs, and how long texts are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Protocol

import numpy as np
import regex

from matchloom.text.languages import FUNCTION_WORDS
from matchloom.text.tokenize import Tokenizer, remember_words
from matchloom.types import MatchloomError


class Words(Protocol):
    """Anything that turns a text into words; a Tokenizer is one."""

    def __call__(self, text: str, /) -> list[str]:
        """The words of one text."""


ENGLISH: Words = Tokenizer("english")

_HAS_WORD = regex.compile(r"[\p{L}\p{N}]")


@cache
def _stop_words(language: str) -> frozenset[str]:
    if language != "english":
        return FUNCTION_WORDS[language]
    from bm25s.stopwords import STOPWORDS_EN_PLUS  # scipy and tqdm come with it

    return frozenset(STOPWORDS_EN_PLUS)


@remember_words
def is_stop_word(word: str, language: str = "english") -> bool:
    """True for a language's function and question words, and for punctuation left by a whitespace tokenizer."""
    return word in _stop_words(language) or not _HAS_WORD.search(word)


def idf(texts: int, frequency: Any) -> Any:
    """Rarity of words that stand in so many of the texts, as Lucene's BM25 has it: never negative, highest for none."""
    return np.log1p((texts - frequency + 0.5) / (frequency + 0.5))


@dataclass(frozen=True)
class WordStatistics:
    """Document frequencies and mean length: all that the lexical scorers know of other texts."""

    texts: int
    mean_length: float
    frequencies: Mapping[str, int]

    def __repr__(self) -> str:
        return f"WordStatistics({self.texts:,} texts, {len(self.frequencies):,} words)"

    @classmethod
    def count(cls, texts: Iterable[Sequence[str]]) -> WordStatistics:
        """Count tokenised texts, one at a time."""
        frequencies: Counter[str] = Counter()
        number = length = 0
        for words in texts:
            number += 1
            length += len(words)
            frequencies.update(set(words))
        if number == 0:
            raise MatchloomError(
                "no texts to count words in; a lexical scorer is fitted on at least one text", code="no_data"
            )
        return cls(number, length / number or 1.0, frequencies)

    def idf(self, word: str) -> float:
        """Rarity of a word."""
        return _idf(self.texts, self.frequencies.get(word, 0))


@lru_cache(maxsize=1 << 14)
def _idf(texts: int, frequency: int) -> float:
    return float(idf(texts, frequency))
