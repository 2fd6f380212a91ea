"""Texts into words. Three ways, one for each kind of text; the choice travels with a saved matcher."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import regex
import rjieba
import Stemmer

from matchloom.types import MatchloomError

# Numbers keep their inner points and commas, words their inner apostrophes; all else parts words and is dropped.
_ENGLISH = regex.compile(r"\d+(?:[.,]\d+)+|[\p{L}\p{M}\d]+(?:['’][\p{L}\p{M}]+)*")
_HAS_WORD = regex.compile(r"[\p{L}\p{N}]")


def _english(text: str) -> list[str]:
    return _ENGLISH.findall(text)


def _chinese(text: str) -> list[str]:
    return [word for word in rjieba.cut(replace_surrogates(text)) if _HAS_WORD.search(word)]


def _whitespace(text: str) -> list[str]:
    return replace_surrogates(text).split()


def replace_surrogates(text: str) -> str:
    """A text without half characters (an argument that is no UTF-8 has them), which nothing could write or hash."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


TOKENIZERS: dict[str, Callable[[str], list[str]]] = {
    "english": _english,
    "chinese": _chinese,
    "whitespace": _whitespace,
}


class Tokenizer(NamedTuple):
    """How texts become words: `kind` is english (a regex), chinese (segmentation) or whitespace (tokenised data).

    `max_words` cuts longer texts; None keeps every word.

    >>> Tokenizer("english")("Don't part 3.5 litres, please!")
    ["don't", 'part', '3.5', 'litres', 'please']
    """

    kind: str = "english"
    lower: bool = True
    max_words: int | None = None

    def __call__(self, text: str) -> list[str]:
        """The words of one text."""
        if self.kind not in TOKENIZERS:
            raise MatchloomError(f"tokenizer {self.kind!r} is unknown; choose one of {', '.join(TOKENIZERS)}")
        words = TOKENIZERS[self.kind](text)[: self.max_words]
        # After the cut and one by one: how a capital sigma is lowered depends on its neighbours, and a word's spelling
        # may not depend on other words.
        return [word.lower() for word in words] if self.lower else words


_STEMMER = Stemmer.Stemmer("english")


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """The Snowball English stem of a word; words of other scripts come back as they are."""
    return str(_STEMMER.stemWord(word))


def stems(words: Iterable[str]) -> list[str]:
    """The stem of each word."""
    return [stem(word) for word in words]


def word_hash(word: str) -> int:
    """A positive number for a word, the same in every process: 62 bits, so that collisions never happen in practice."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little") >> 2
