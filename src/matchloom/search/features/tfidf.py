"""TF-IDF of words and of character n-grams as scikit-learn makes it by default: what linear classifiers are given.

    words    as the tokenizer gives them; where there are many texts, two in a row as well, if two texts have them
    n-grams  two to four characters in a row within what stands between spaces, its ends marked
    value    (1 + ln count) * idf, each of the two blocks L2-normalised

It differs on purpose from `matchloom.search.reader`, which joins word forms and counts entries: two views that err
differently are worth more in a fusion than one view twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Floats, Sparse
from matchloom.lexical.ranking import NGRAM, TERM, Weighing
from matchloom.search.arrays import Texts
from matchloom.search.features.base import Arrays
from matchloom.search.queries import matrix_of
from matchloom.search.reader import Positions

_LEAST, _MOST = 2, 4  # characters
_BETWEEN = "\n"  # of two words in a row: no word has it
_REMEMBERED = 50_000  # tokens whose n-grams are kept
_LONGEST = 40  # characters of such a token
_BYTES = 8  # of a number


class _Block:
    """One of the two ways to take a text apart: the numbers of its parts, and how rare each is."""

    def __init__(self, numbers: dict[str, int], idf: Floats) -> None:
        self.numbers, self.idf = numbers, idf

    @classmethod
    def fit(cls, texts: Iterable[Iterable[str]]) -> _Block:
        """From the parts of each text."""
        frequencies: Counter[str] = Counter()
        count = 0
        for parts in texts:
            frequencies.update(set(parts))
            count += 1
        kept = sorted(part for part, times in frequencies.items() if times > 1 or _BETWEEN not in part)
        numbers = {part: n for n, part in enumerate(kept)}
        df = np.array([frequencies[part] for part in numbers], dtype=np.float64)
        return cls(numbers, np.log((count + 1) / (df + 1)) + 1)


class TfIdf:
    """What is known of the words and n-grams of some texts. Words are numbered before n-grams."""

    def __init__(self, words: _Block, ngrams: _Block) -> None:
        self._words, self._ngrams = words, ngrams
        self.size = len(words.numbers) + len(ngrams.numbers)
        self._pairs = any(_BETWEEN in word for word in words.numbers)
        self._tokens: dict[str, bytes] = {}

    @property
    def word_count(self) -> int:
        """How many of the first numbers are words."""
        return len(self._words.numbers)

    def number(self, word: str) -> int | None:
        """The number of a word, if it is known."""
        return self._words.numbers.get(word)

    @classmethod
    def fit(cls, texts: Sequence[str], words: Sequence[Sequence[str]], *, pairs: bool = False) -> TfIdf:
        """From texts and their words; with `pairs` of words, too."""
        return cls(
            _Block.fit(map(_with_pairs, words) if pairs else words),
            _Block.fit(chain.from_iterable(map(_ngrams, set(text.lower().split()))) for text in texts),
        )

    def words_alone(self) -> TfIdf:
        """The same without n-grams: the first `word_count` numbers, which mean what they did."""
        return TfIdf(self._words, _Block({}, np.empty(0)))

    def read(self, texts: Sequence[str], words: Sequence[Sequence[str]]) -> Sparse:
        """One row a text, its features ascending."""
        parts: list[bytes] = []
        sizes = []
        tokens, known = self._tokens, self._known
        for text, own in zip(texts, words, strict=True):
            found = [known[word] for word in (_with_pairs(own) if self._pairs else own) if word in known]
            found += [tokens.get(token) or self._token(token) for token in text.lower().split()]
            parts += found
            sizes.append(sum(map(len, found)) // _BYTES)
        return self._weighing.read(sizes, b"".join(parts)).vectors

    def matrix(self, texts: Sequence[str], words: Sequence[Sequence[str]]) -> sp.csr_array:
        """The same as scikit-learn takes it, which has 32 bits for a column. (texts, features)"""
        made = matrix_of(self.read(texts, words), self.size)
        made.indices, made.indptr = made.indices.astype(np.int32), made.indptr.astype(np.int32)
        return made

    def _token(self, token: str) -> bytes:
        """The numbers of the known n-grams of what stands between spaces."""
        known, start = self._ngrams.numbers, len(self._words.numbers)
        own = [start + known[gram] for gram in _ngrams(token) if gram in known]
        made = np.array(own, dtype=np.int64).tobytes()
        if len(token) <= _LONGEST:
            if len(self._tokens) >= _REMEMBERED:
                self._tokens = {}
            self._tokens[token] = made
        return made

    @cached_property
    def _known(self) -> dict[str, bytes]:
        """The number of each word, as the kernel takes it."""
        whole = np.arange(len(self._words.numbers), dtype=np.int64).tobytes()
        return {word: whole[_BYTES * n : _BYTES * (n + 1)] for word, n in self._words.numbers.items()}

    @cached_property
    def _weighing(self) -> Weighing:
        sizes = (len(self._words.numbers), len(self._ngrams.numbers))
        kinds = np.repeat(np.array([TERM, NGRAM], dtype=np.uint8), sizes)
        return Weighing(kinds, np.concatenate([self._words.idf, self._ngrams.idf]), factor=1.0, single=False)

    def positions(self, words: Sequence[str]) -> Positions:
        """Where each feature stands: for each occurrence the positions of its words.

        N-grams that reach over the end of a word belong to both words; those of what the tokenizer drops to none.
        """
        found: Positions = {}
        known = self._words.numbers
        for i, word in enumerate(words):
            if word in known:
                found.setdefault(known[word], []).append((i,))
            for gram in _inside(f" {word} "):
                self._add(found, gram, (i,))
        for i, (one, other) in enumerate(pairwise(words)):
            if f"{one}{_BETWEEN}{other}" in known:
                found.setdefault(known[f"{one}{_BETWEEN}{other}"], []).append((i, i + 1))
            own = {*_inside(f" {one} "), *_inside(f" {other} ")}
            for gram in _inside(f" {one}{other} "):
                if gram not in own:
                    self._add(found, gram, (i, i + 1))
        return found

    def _add(self, found: Positions, gram: str, position: tuple[int, ...]) -> None:
        if gram in self._ngrams.numbers:
            found.setdefault(len(self._words.numbers) + self._ngrams.numbers[gram], []).append(position)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        return {
            **Texts.of(self._words.numbers).arrays("words"),
            **Texts.of(self._ngrams.numbers).arrays("ngrams"),
            "word_idf": self._words.idf,
            "ngram_idf": self._ngrams.idf,
        }

    @classmethod
    def load(cls, arrays: Arrays) -> TfIdf:
        """From what was saved."""
        return cls(_block(arrays, "words", "word_idf"), _block(arrays, "ngrams", "ngram_idf"))


def _with_pairs(words: Sequence[str]) -> list[str]:
    return [*words, *map(_BETWEEN.join, pairwise(words))]


def _block(arrays: Arrays, name: str, idf: str) -> _Block:
    numbers = {part: n for n, part in enumerate(Texts.load(arrays, name))}
    if arrays[idf].shape != (len(numbers),) or arrays[idf].dtype != np.float64:
        raise ValueError(f"{idf} that does not fit")
    return _Block(numbers, arrays[idf])


@lru_cache(_REMEMBERED)
def _ngrams_of_short(token: str) -> tuple[str, ...]:
    return tuple(_ngrams_of_any(token))


def _ngrams(token: str) -> Sequence[str]:
    """Two to four characters in a row within what stands between spaces; of a shorter token all of it, once."""
    return _ngrams_of_short(token) if len(token) <= _LONGEST else _ngrams_of_any(token)


def _ngrams_of_any(token: str) -> list[str]:
    marked = f" {token} "
    found: list[str] = []
    for n in range(_LEAST, _MOST + 1):
        found += [marked[i : i + n] for i in range(max(1, len(marked) - n + 1))]
        if len(marked) <= n:
            break
    return found


def _inside(marked: str) -> list[str]:
    return [marked[i : i + n] for n in range(_LEAST, _MOST + 1) for i in range(len(marked) - n + 1)]
