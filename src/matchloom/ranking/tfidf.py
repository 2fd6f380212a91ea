"""TF-IDF of words and of letters as scikit-learn makes it by default: what a linear classifier is usually given.

    words    as the tokenizer cuts them
    letters  two to four in a row within what stands between spaces, its ends marked
    value    (1 + ln count) * idf, each of the two blocks scaled to length 1

It differs on purpose from `matchloom.ranking.reading`, which joins word forms and counts answers: two views that err
differently are worth more in a mixture than one view twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from matchloom.ranking.answers import Floats, Ids
from matchloom.text.tokenize import Tokenizer

_LETTERS = (2, 4)


class WordsAndLetters:
    """What is known of the words and letters of some texts. Words are numbered before letters."""

    def __init__(self, texts: Sequence[str], tokenizer: Tokenizer) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        made = (
            TfidfVectorizer(analyzer=tokenizer, sublinear_tf=True),
            TfidfVectorizer(analyzer="char_wb", ngram_range=_LETTERS, sublinear_tf=True),
        )
        self._vectorizers = [vectorizer for vectorizer in made if _fitted(vectorizer, texts)]
        self._analysers = [vectorizer.build_analyzer() for vectorizer in self._vectorizers]
        self._words, self._letters = (getattr(vectorizer, "vocabulary_", {}) for vectorizer in made)
        self.size = len(self._words) + len(self._letters)

    def vectors(self, texts: Sequence[str]) -> sp.csr_array:
        """One row a text. (texts, features)"""
        if not self._vectorizers:
            return sp.csr_array((len(texts), 0))
        return sp.csr_array(sp.hstack([one.transform(texts) for one in self._vectorizers], format="csr"))

    def read(self, text: str) -> tuple[Ids, Floats]:
        """The features of one text and their values: a row of `vectors`, many times as fast."""
        features, values, start = [], [], 0
        for vectorizer, analyse in zip(self._vectorizers, self._analysers, strict=True):
            known = vectorizer.vocabulary_
            counts = sorted(Counter(known[part] for part in analyse(text) if part in known).items())
            own = np.array([one for one, _ in counts], dtype=np.int64)
            weights = (1 + np.log(np.array([n for _, n in counts], dtype=np.float64))) * vectorizer.idf_[own]
            features.append(start + own)
            values.append(weights / np.sqrt((weights**2).sum() or 1.0))
            start += len(known)
        return np.concatenate([np.empty(0, dtype=np.int64), *features]), np.concatenate([np.empty(0), *values])

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


def _fitted(vectorizer: Any, texts: Sequence[str]) -> bool:
    try:
        vectorizer.fit(texts)
    except ValueError:  # scikit-learn's word for texts that hold nothing
        return False
    return True


def _grams(marked: str) -> list[str]:
    least, most = _LETTERS
    return [marked[i : i + n] for n in range(least, most + 1) for i in range(len(marked) - n + 1)]
