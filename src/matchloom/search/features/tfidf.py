"""TF-IDF of words and of letters as scikit-learn makes it by default: what a linear classifier is usually given.

    words    as the tokenizer cuts them
    letters  two to four in a row within what stands between spaces, its ends marked
    value    (1 + ln count) * idf, each of the two blocks scaled to length 1

It differs on purpose from `matchloom.search.reader`, which joins word forms and counts answers: two views that err
differently are worth more in a mixture than one view twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from matchloom.search.entries import Floats, Ids
from matchloom.text.tokenize import Tokenizer

_LETTERS = (2, 4)


class _Block:
    """One of the two ways to take a text apart: what its parts are numbered by, and how rare each is."""

    def __init__(self, texts: Sequence[str], analyse: Callable[[str], list[str]]) -> None:
        self.analyse = analyse
        frequencies: Counter[str] = Counter()
        for text in texts:
            frequencies.update(set(analyse(text)))
        self.numbers = {part: n for n, part in enumerate(sorted(frequencies))}
        df = np.array([frequencies[part] for part in self.numbers], dtype=np.float64)
        self.idf: Floats = np.log((len(texts) + 1) / (df + 1)) + 1

    def counts(self, text: str) -> list[tuple[int, int]]:
        """The numbers of a text's known parts, in their order, and how often it has each."""
        numbers = self.numbers
        return sorted(Counter(numbers[part] for part in self.analyse(text) if part in numbers).items())

    def weights(self, features: Ids, counts: Floats) -> Floats:
        """What parts count before they are scaled."""
        found: Floats = (np.log(counts) + 1) * self.idf[features]
        return found

    def vectors(self, texts: Sequence[str]) -> sp.csr_array:
        """One row a text. (texts, parts)"""
        rows = [self.counts(text) for text in texts]
        ends = np.cumsum([0, *(len(row) for row in rows)])
        flat = np.array([one for row in rows for one in row], dtype=np.int64).reshape(-1, 2)
        features, counts = flat[:, 0], flat[:, 1].astype(np.float64)
        weights = self.weights(features, counts)
        owners = np.repeat(np.arange(len(texts)), np.diff(ends))
        norms = np.sqrt(np.bincount(owners, weights**2, minlength=len(texts)))
        shape = (len(texts), len(self.numbers))  # scikit-learn takes 32 bits alone
        return sp.csr_array((weights / norms[owners], features.astype(np.int32), ends.astype(np.int32)), shape=shape)


class WordsAndLetters:
    """What is known of the words and letters of some texts. Words are numbered before letters."""

    def __init__(self, texts: Sequence[str], tokenizer: Tokenizer) -> None:
        self._blocks = (_Block(texts, tokenizer.__call__), _Block(texts, _letters))
        self._words, self._letters = (block.numbers for block in self._blocks)
        self.size = len(self._words) + len(self._letters)

    def vectors(self, texts: Sequence[str]) -> sp.csr_array:
        """One row a text. (texts, features)"""
        return sp.csr_array(sp.hstack([block.vectors(texts) for block in self._blocks], format="csr"))

    def read(self, text: str) -> tuple[Ids, Floats]:
        """The features of one text and their values: a row of `vectors`, many times as fast."""
        features, values, start = [], [], 0
        for block in self._blocks:
            counts = block.counts(text)
            own = np.array([one for one, _ in counts], dtype=np.int64)
            weights = block.weights(own, np.array([n for _, n in counts], dtype=np.float64))
            features.append(start + own)
            values.append(weights / np.sqrt((weights**2).sum() or 1.0))
            start += len(block.numbers)
        return np.concatenate(features), np.concatenate(values)

    def places(self, words: Sequence[str]) -> dict[int, list[tuple[int, ...]]]:
        """Where each feature stands: for each occurrence the positions of its words.

        Letters that reach over the end of a word belong to both words; those of what the tokenizer drops to none.
        """
        found: dict[int, list[tuple[int, ...]]] = {}
        for i, word in enumerate(words):
            if word in self._words:
                found.setdefault(int(self._words[word]), []).append((i,))
            for gram in _grams(f" {word} "):
                self._add(found, gram, (i,))
        for i, (one, other) in enumerate(pairwise(words)):
            inside = {*_grams(f" {one} "), *_grams(f" {other} ")}
            for gram in _grams(f" {one}{other} "):
                if gram not in inside:
                    self._add(found, gram, (i, i + 1))
        return found

    def _add(self, found: dict[int, list[tuple[int, ...]]], gram: str, place: tuple[int, ...]) -> None:
        if gram in self._letters:
            found.setdefault(len(self._words) + int(self._letters[gram]), []).append(place)


def _letters(text: str) -> list[str]:
    """Two to four letters in a row within what stands between spaces; of a shorter word all of it, once."""
    least, most = _LETTERS
    found = []
    for word in text.lower().split():
        marked = f" {word} "
        for n in range(least, most + 1):
            found += [marked[i : i + n] for i in range(max(1, len(marked) - n + 1))]
            if len(marked) <= n:
                break
    return found


def _grams(marked: str) -> list[str]:
    least, most = _LETTERS
    return [marked[i : i + n] for n in range(least, most + 1) for i in range(len(marked) - n + 1)]
