"""BM25: each query word the text holds adds its rarity, damped by repetition and by the text's length.

    score(q, d) = sum over words w of q of  idf(w) * tf / (tf + k1 * (1 - b + b * |d| / mean length))
    idf(w)      = ln(1 + (N - df + 0.5) / (df + 0.5))

A word that is asked twice counts twice. This is the Lucene variant in the comparison of Kamphuis et al., "Which BM25 do
you mean?" (ECIR 2020), with Lucene's k1 and b; a test holds it equal to bm25s with method="lucene". It scores given
pairs, and texts outside the collection too; `bm25_matrix.py` scores a query against a whole collection.

`normalize` divides by what the query scores with itself. Plain BM25 has no scale: it grows with the query's length.
Divided so it is 0 without a common word and 1 for the same text, as a cosine is, and can be mixed with other scores.
Within one query the order stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, overload

import numpy as np

from matchloom.basics.progress import track
from matchloom.basics.validation import one_text, plain_pairs, shown
from matchloom.lexical.exact_match import exact_match_trace
from matchloom.lexical.statistics import ENGLISH, Words, WordStatistics, is_stop_word
from matchloom.text.tokenize import language_of_words
from matchloom.text.tokenize import stem as stem_of
from matchloom.types import MatchloomError, Pair, Scores, Trace

K1, B = 1.2, 0.75  # Lucene's; also of mined negatives (data/negatives.py)


def saturation(tf: Any, length: Any, mean_length: float, k1: float = K1, b: float = B) -> Any:
    """How much so many occurrences count in a text of this length."""
    return tf / (tf + k1 * (1 - b + b * length / mean_length))


class BM25:
    """BM25 of a text for a query. `stem` joins the forms of a word; `stop_words` drops function words.

    >>> scorer = BM25.fit(["a loom weaves cloth", "a mill grinds corn"])
    >>> scorer.score([Pair("who weaves", "a loom weaves cloth"), Pair("who weaves", "a mill grinds corn")])
    array([0.3150669, 0.       ], dtype=float32)
    """

    bounds: tuple[float, float] = (0.0, float("inf"))

    def __init__(
        self,
        collection: WordStatistics,
        *,
        tokenizer: Words = ENGLISH,
        stem: bool = False,
        stop_words: bool = False,
        normalize: bool = False,
        k1: float = K1,
        b: float = B,
    ) -> None:
        if not (k1 >= 0 and 0 <= b <= 1):
            raise MatchloomError(f"BM25 takes k1 >= 0 and b between 0 and 1, found k1={k1}, b={b}", code="bad_value")
        self.name = "normalized_bm25" if normalize else "bm25_stemmed" if stem else "bm25"
        self.collection = collection
        self.tokenizer = tokenizer
        self.stem = stem
        self.stop_words = stop_words
        self.normalize = normalize
        self.k1 = k1
        self.b = b

    @classmethod
    def fit(
        cls,
        texts: Iterable[str],
        *,
        tokenizer: Words = ENGLISH,
        stem: bool = False,
        stop_words: bool = False,
        normalize: bool = False,
        k1: float = K1,
        b: float = B,
    ) -> BM25:
        """Take document frequencies and the mean length from these texts.

        Args:
            texts: The collection.
            tokenizer: How a text becomes words.
            stem: Count stems in place of words.
            stop_words: Leave out function words.
            normalize: Divide by what the query scores with itself.
            k1: How soon more occurrences of a word add little: the saturation of term frequency.
            b: How much long texts are penalised, from 0 to 1.
        """
        language = language_of_words(tokenizer)
        terms = (_terms(tokenizer(text), stem, stop_words, language) for text in _texts(texts))
        collection = WordStatistics.count([term for term in row if term is not None] for row in terms)
        return cls(collection, tokenizer=tokenizer, stem=stem, stop_words=stop_words, normalize=normalize, k1=k1, b=b)

    def __repr__(self) -> str:
        return f"BM25({self.collection!r}, stem={self.stem}, stop_words={self.stop_words}, k1={self.k1}, b={self.b})"

    @overload
    def score(self, pairs: str, text: str) -> float: ...

    @overload
    def score(self, pairs: Iterable[Pair | tuple[str, str]], *, progress: bool = False) -> Scores: ...

    def score(
        self, pairs: str | Iterable[Pair | tuple[str, str]], text: str | None = None, *, progress: bool = False
    ) -> Scores | float:
        """One score for each pair, or that of one query and text; it depends on that pair and the collection only.

        Args:
            pairs: Any pairs, whose labels are not used; or one query.
            text: The text to that one query.
            progress: Whether to show a bar.
        """
        if text is not None:
            return float(self.score([Pair(one_text("query", pairs), one_text("text", text))])[0])
        pairs = plain_pairs(pairs)

        # Candidate lists repeat texts and queries; the bound keeps memory flat on endless ones.
        @lru_cache(maxsize=1 << 16)
        def query_terms(query: str) -> list[str | None]:
            return self._terms(self.tokenizer(query))

        @lru_cache(maxsize=1 << 16)
        def text_counts(text: str) -> Counter[str]:
            return _counts(self._terms(self.tokenizer(text)))

        scores = np.zeros(len(pairs), np.float32)
        for n, pair in enumerate(track(pairs, self.name, show=progress)):
            scores[n] = sum(self._contributions(query_terms(pair.query), text_counts(pair.text)))
        if self.normalize:
            own = {query: self._own_score(query_terms(query)) for query in {pair.query for pair in pairs}}
            scores /= np.array([own[pair.query] for pair in pairs], np.float32)
        return scores

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The words that matched, their rarity and what they add to the score.

        Args:
            query: One text.
            text: The other.
        """
        left_words, right_words = self.tokenizer(query), self.tokenizer(text)
        left, right = self._terms(left_words), self._terms(right_words)
        own = self._own_score(left) if self.normalize else 1.0
        contributions = [one / own for one in self._contributions(left, _counts(right))]
        strengths = [self.collection.idf(term) if term is not None else 0.0 for term in left]
        score = float(self.score([Pair(query, text)])[0])
        return left_words, right_words, exact_match_trace(left, right, strengths, contributions, score)

    def _own_score(self, terms: list[str | None]) -> float:
        """What a query scores with itself; 1 for one without words that count."""
        return float(np.float32(sum(self._contributions(terms, _counts(terms))))) or 1.0

    def _terms(self, words: list[str]) -> list[str | None]:
        return _terms(words, self.stem, self.stop_words, language_of_words(self.tokenizer))

    def _contributions(self, query: list[str | None], text: Counter[str]) -> list[float]:
        """What each query term adds to the score."""
        length, mean_length = text.total(), self.collection.mean_length
        contributions = []
        for term in query:
            count = text[term] if term is not None else 0
            if term is None or not count:
                contributions.append(0.0)
            else:
                weight = saturation(count, length, mean_length, self.k1, self.b)
                contributions.append(weight * self.collection.idf(term))
        return contributions


def _terms(words: list[str], stem: bool, stop_words: bool, language: str) -> list[str | None]:
    """The term of each word, None for those that are dropped."""
    if not (stem or stop_words):
        return list(words)
    return [
        None if stop_words and is_stop_word(word, language) else stem_of(word, language) if stem else word
        for word in words
    ]


def _texts(given: Iterable[str]) -> Iterable[str]:
    """The texts one by one, each told if it is none; a single text is refused, which would be many letters."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise MatchloomError(f"texts is {shown(given)}; expected a list of texts", code="wrong_type")
    return (one_text(f"texts, item {number}", text) for number, text in enumerate(given, start=1))


def _counts(terms: Iterable[str | None]) -> Counter[str]:
    return Counter(term for term in terms if term is not None)
