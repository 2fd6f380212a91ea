"""How a collection reads a text, once: its stems, and a vector of words and character n-grams.

    words    stems, one and two in a row
    n-grams  two to five characters in a row within a word, its ends marked: they catch typing errors and word forms
    value    (1 + ln count) * idf, each of the two blocks scaled to length sqrt(1/2)
    idf      ln((1 + A) / (1 + df)) + 1, where df counts ENTRIES that have it, in a question of theirs or in their text

In other languages than English, function words have no part in the vector: English questions are told by their question
words too, but on a German FAQ leaving them out finds .314 in place of .291 of the answers. BM25 counts them in every
language.

Counting entries and not texts keeps a word that many questions of one entry share from looking common. Large
collections are not read `whole`: the texts of answers have no n-grams (there are hundreds in each, and they say little
about a long text), and no two stems count as one (millions of pairs, most of them seen once, changed nothing on
InsuranceQA).

A reader that was fitted can be extended by the texts of new entries: what is new gets numbers behind all others and the
idf of what one entry has. All else stays, so that known texts need not be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from threading import local
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.basics.progress import track
from matchloom.lexical.columns import Floats, Ids, Rows, Sparse
from matchloom.lexical.ranking import NGRAM, TERM, TWO, Read, Weighing
from matchloom.search.arrays import Texts
from matchloom.text.languages import ENGLISH, FUNCTION_WORDS
from matchloom.text.tokenize import Tokenizer, stem

T = TypeVar("T")
Positions = dict[int, list[tuple[int, ...]]]  # of each feature, for each occurrence the positions of its words
NGRAMS = (2, 3, 4, 5)
_REMEMBERED = 50_000  # words whose features are kept
_LONGEST = 40  # characters of such a word
_AT_ONCE = 4_000  # texts that are counted together


def ngrams_of(word: str) -> list[str]:
    """The n-grams of a word, two to five characters, with a space at either end.

    >>> ngrams_of("ab")
    [' a', 'ab', 'b ', ' ab', 'ab ', ' ab ']
    """
    marked = f" {word} "
    return [marked[i : i + n] for n in NGRAMS for i in range(len(marked) - n + 1)]


@dataclass(eq=False)
class Queries:
    """Some texts as they were read once: for every feature, for their probabilities and for their explanations.

    `terms` are their different stems and how often they have each, `vectors` their features and values.
    """

    texts: Sequence[str]
    words: Sequence[Sequence[str]]
    terms: Sparse
    vectors: Sparse
    coverage: Floats  # (N,) which part of the different stems and n-grams the collection has
    _own: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def once(self, name: str, make: Callable[[Queries], T]) -> T:
        """What `make` makes of the texts, when it is first asked for: for features that read in their own way."""
        if name not in self._own:
            self._own[name] = make(self)
        found: T = self._own[name]
        return found

    def one(self, n: int) -> Queries:
        """One of them."""
        if len(self) == 1:
            return self
        terms, vectors = Sparse.one(*self.terms[n]), Sparse.one(*self.vectors[n])
        return Queries([self.texts[n]], [self.words[n]], terms, vectors, self.coverage[[n]])


class Counted(NamedTuple):
    """How often texts have each feature, and how many of their stems and n-grams have no number."""

    features: Sparse
    unknown: Ids


class _Word(NamedTuple):
    stem: int  # -1 for one that is not known
    ngrams: NDArray[np.int64]
    plain: bytes  # the stem's number
    whole: bytes  # and those of the n-grams
    unknown: tuple[str, ...]  # stems and n-grams without a number


class Reader:
    """What is known of the stems, pairs of stems and n-grams of a collection, each with a number."""

    def __init__(self, tokenizer: Tokenizer, *, whole: bool = True) -> None:
        self.tokenizer: Tokenizer = tokenizer
        self.whole: bool = whole
        self.stems: dict[str, int] = {}
        self.two: dict[tuple[int, int], int] = {}
        self.ngrams: dict[str, int] = {}
        self.kinds: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
        self.idf: Floats = np.empty(0)
        self._new_idf = 1.0  # of a feature that one entry has
        self._fitted = 0  # features that have a number since the fit; later ones are not saved
        self._silent = silent_words(tokenizer.language)
        self._words: dict[str, _Word] = {}
        self._weighs: Weighing | None = None
        self._scratch = local()

    @property
    def size(self) -> int:
        """How many features have a number."""
        return len(self.kinds)

    # ---- learning words

    def fit(
        self, questions: Sequence[str], texts: Sequence[str], member: sp.csr_array, *, progress: bool = False
    ) -> tuple[Queries, Queries]:
        """Learn from a collection, and read its questions and texts; `member` is (questions, entries)."""
        words = [self.tokenizer(text) for text in track([*questions, *texts], "reading", show=progress)]
        asked, told = words[: len(questions)], words[len(questions) :]
        self._number(asked, told)
        counts = self.count(asked), self.count(told, ngrams=self.whole)
        matrices = [matrix_of(one.features, self.size) for one in counts]
        documents = (member.T.tocsr() @ matrices[0] + matrices[1]).tocsc()
        self.idf = np.log((1 + len(texts)) / (1 + np.diff(documents.indptr))) + 1
        self.idf[self._silent_features(0, self.stems, self.two)] = 0
        self._new_idf = float(np.log((1 + len(texts)) / 2) + 1)
        self._fitted = self.size
        return self._made(questions, asked, counts[0]), self._made(texts, told, counts[1])

    def extend(self, questions: Sequence[str], texts: Sequence[str]) -> tuple[Queries, Queries]:
        """Read the questions and texts of new entries, of which everything that is new gets a number."""
        asked, told = ([self.tokenizer(text) for text in side] for side in (questions, texts))
        self._number(asked, told)
        return self._made(questions, asked, self.count(asked)), self._made(
            texts, told, self.count(told, ngrams=self.whole)
        )

    def _number(self, asked: Sequence[Sequence[str]], told: Sequence[Sequence[str]]) -> None:
        """Give numbers to what has none: all stems, then all pairs of stems, then all n-grams.

        Searches may go on meanwhile, so that what belongs to a number is there before the number is.
        """
        both = list(chain(asked, told))
        before, language = self.size, self.tokenizer.language
        different = {word: stem(word, language) for word in dict.fromkeys(chain.from_iterable(both))}
        stems = _numbered(different.values(), self.stems, self.size)
        two: dict[tuple[int, int], int] = {}
        if self.whole:
            number = {word: self.stems.get(one, stems.get(one, -1)) for word, one in different.items()}
            pairs = (pair for row in both for pair in pairwise(number[word] for word in row))
            two = _numbered(pairs, self.two, self.size + len(stems))
        spelt = different if self.whole else dict.fromkeys(chain.from_iterable(asked))
        grams = (gram for word in spelt for gram in self._grams(word))
        ngrams = _numbered(grams, self.ngrams, self.size + len(stems) + len(two))
        kinds = np.repeat(np.array([TERM, TWO, NGRAM], dtype=np.uint8), (len(stems), len(two), len(ngrams)))
        idf = np.concatenate([self.idf, np.full(len(kinds), self._new_idf)])
        idf[self._silent_features(before, {**self.stems, **stems}, two)] = 0
        self.idf = idf
        self.kinds = np.concatenate([self.kinds, kinds])
        self.stems.update(stems)
        self.two.update(two)
        self.ngrams.update(ngrams)
        self._words = {}

    def _grams(self, word: str) -> list[str]:
        return [] if word in self._silent else ngrams_of(word)

    def _silent_features(self, start: int, stems: Mapping[str, int], two: Mapping[tuple[int, int], int]) -> list[int]:
        """The numbers from `start` on of stems of function words, and of pairs with one."""
        if not self._silent:
            return []
        own = {stems.get(stem(word, self.tokenizer.language), -1) for word in self._silent}
        pairs = [n for pair, n in two.items() if n >= start and not own.isdisjoint(pair)]
        return [*(n for n in own if n >= start), *pairs]

    # ---- reading

    def read(self, texts: Sequence[str], *, answers: bool = False) -> Queries:
        """Questions, or texts that may answer one; what the collection does not hold is left out."""
        words = [self.tokenizer(text) for text in texts]
        parts: list[bytes] = []
        sizes, unknown = [], []
        known, two, start = self._words, self.two, 0
        for own in words:
            read = [known.get(word) or self._word(word) for word in own]
            parts += [one.plain for one in read] if answers and not self.whole else [one.whole for one in read]
            if two:
                numbers = [two[pair] for pair in pairwise(one.stem for one in read) if pair in two]
                parts.append(np.array(numbers, dtype=np.int64).tobytes() if numbers else b"")
            size = sum(map(len, parts[start:])) // 8
            sizes.append(size)
            start = len(parts)
            new = [one.unknown for one in read if one.unknown]
            unknown.append(len(set(chain.from_iterable(new))) if new else 0)
        return self._queries(texts, words, self._weighing().read(sizes, b"".join(parts)), unknown)

    def count(self, texts: Sequence[Sequence[str]], *, ngrams: bool = True) -> Counted:
        """How often each feature stands in each text, as tokenised words."""
        parts = [self._count(texts[n : n + _AT_ONCE], ngrams) for n in range(0, max(1, len(texts)), _AT_ONCE)]
        sizes = np.concatenate([np.diff(one.features.bounds) for one in parts])
        columns, values = (np.concatenate([getattr(one.features, name) for one in parts]) for name in _SIDES)
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        return Counted(Sparse(bounds, columns, values), np.concatenate([one.unknown for one in parts]))

    def _count(self, texts: Sequence[Sequence[str]], ngrams: bool) -> Counted:
        found: list[NDArray[np.int64]] = []
        sizes = np.zeros(len(texts), dtype=np.int64)
        unknown = np.zeros(len(texts), dtype=np.int64)
        two, known = self.two, self._words
        for n, words in enumerate(texts):
            read = [known.get(word) or self._word(word) for word in words]
            stems = [one.stem for one in read]
            plain = [one for one in stems if one >= 0]
            if two:
                plain += [two[pair] for pair in pairwise(stems) if pair in two]
            own = [np.array(plain, dtype=np.int64), *([one.ngrams for one in read] if ngrams else ())]
            found += own
            sizes[n] = sum(map(len, own))
            unknown[n] = len(set(chain.from_iterable(one.unknown for one in read)))
        size = max(1, self.size)
        keys = np.repeat(np.arange(len(texts)) * size, sizes)
        if found:
            keys += np.concatenate(found)
        keys, counts = np.unique(keys, return_counts=True)
        owners, features = keys // size, keys % size
        bounds = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(texts)))])
        return Counted(Sparse(bounds, features, counts.astype(np.float64)), unknown)

    def _word(self, word: str) -> _Word:
        remembered = self._words  # another takes its place when there are more numbers
        own = stem(word, self.tokenizer.language)
        grams = self._grams(word)
        numbers = [self.ngrams[gram] for gram in grams if gram in self.ngrams]
        unknown = {gram for gram in grams if gram not in self.ngrams} if len(numbers) < len(grams) else set()
        if own not in self.stems:
            unknown.add("\0" + own)  # apart from an n-gram of the same characters
        number = self.stems.get(own, -1)
        plain, ngrams = np.array([number][: number >= 0], dtype=np.int64), np.array(numbers, dtype=np.int64)
        made = _Word(number, ngrams, plain.tobytes(), plain.tobytes() + ngrams.tobytes(), tuple(unknown))
        if len(word) <= _LONGEST:
            if len(remembered) >= _REMEMBERED:
                self._words = remembered = {}
            remembered[word] = made
        return made

    def _made(self, texts: Sequence[str], words: Sequence[Sequence[str]], counted: Counted) -> Queries:
        own = counted.features
        return self._queries(
            texts, words, self._weighing().weighed(own.bounds, own.columns, own.values), counted.unknown
        )

    def _queries(
        self, texts: Sequence[str], words: Sequence[Sequence[str]], read: Read, unknown: Sequence[int] | Ids
    ) -> Queries:
        every = np.add(read.known, unknown)
        return Queries(texts, words, read.terms, read.vectors, read.known / np.maximum(1, every))

    def _weighing(self) -> Weighing:
        """How features are weighed; another where there are more numbers."""
        made = self._weighs
        if made is None or made.idf is not self.idf or made.kinds is not self.kinds:
            made = self._weighs = Weighing(self.kinds, self.idf, factor=2.0, single=True)
        return made

    def coverage_without(self, features: Ids, times: Ids) -> float:
        """The coverage of a known question if it were not known; `times` is in how many texts each feature stands."""
        kept = features[self.kinds[features] != TWO]
        return float((times[kept] > 1).sum()) / max(1, len(kept))

    @contextmanager
    def dense(self, columns: Ids, values: Floats) -> Iterator[Floats]:
        """A question as a dense vector of this thread's own. (features,)"""
        vector = self.scratch()
        vector[columns] = values
        try:
            yield vector
        finally:
            vector[columns] = 0

    def scratch(self) -> Floats:
        """Zeros of this thread's own, one for each feature: whoever takes them leaves zeros behind."""
        vector: Floats | None = getattr(self._scratch, "zeros", None)
        if vector is None or len(vector) < self.size:
            vector = self._scratch.zeros = np.zeros(self.size + self.size // 8)
        return vector

    def terms(self, words: Sequence[str]) -> list[int]:
        """The number of each word's stem, -1 for those that are not known."""
        return [self.stems.get(stem(word, self.tokenizer.language), -1) for word in words]

    def positions(self, words: Sequence[str]) -> Positions:
        """Where each feature stands: for each of its occurrences the positions of its words."""
        found: Positions = {}
        terms = self.terms(words)
        for i, word in enumerate(words):
            if terms[i] >= 0:
                found.setdefault(terms[i], []).append((i,))
            for gram in self._grams(word):
                if gram in self.ngrams:
                    found.setdefault(self.ngrams[gram], []).append((i,))
        for i, both in enumerate(pairwise(terms)):
            if both in self.two:
                found.setdefault(self.two[both], []).append((i, i + 1))
        return found

    # ---- saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved: as it was fitted, for what came later is in the journal."""
        two = np.array(self._saved(self.two), dtype=np.int32).reshape(-1, 2)
        return {
            **Texts.of(self._saved(self.stems)).arrays("stems"),
            **Texts.of(self._saved(self.ngrams)).arrays("ngrams"),
            "two": two,
            "idf": self.idf[: self._fitted],
            "new_idf": np.array([self._new_idf]),
        }

    def _saved(self, numbers: Mapping[T, int]) -> list[T]:
        return [one for one, number in numbers.items() if number < self._fitted]

    @classmethod
    def load(cls, tokenizer: Tokenizer, whole: bool, arrays: Mapping[str, NDArray[Any]]) -> Reader:
        """From what was saved."""
        self = cls(tokenizer, whole=whole)
        self.stems = {one: n for n, one in enumerate(Texts.load(arrays, "stems"))}
        start = len(self.stems)
        self.two = {(a, b): n for n, (a, b) in enumerate(arrays["two"].tolist(), start=start)}
        self.ngrams = {one: n for n, one in enumerate(Texts.load(arrays, "ngrams"), start=start + len(self.two))}
        sizes = (len(self.stems), len(self.two), len(self.ngrams))
        self.kinds = np.repeat(np.array([TERM, TWO, NGRAM], dtype=np.uint8), sizes)
        self.idf, self._new_idf = arrays["idf"], float(arrays["new_idf"][0])
        self._fitted = self.size
        if len(self.idf) != self.size:
            raise ValueError(f"{self.size} features and {len(self.idf)} weights")
        return self


def _numbered(found: Iterable[T], known: Mapping[T, int], start: int) -> dict[T, int]:
    """Numbers from `start` on for what has none, in the order in which it comes."""
    new = dict.fromkeys(one for one in found if one not in known)
    return {one: number for number, one in enumerate(new, start=start)}


_SIDES = ("columns", "values")


def silent_words(language: str) -> frozenset[str]:
    """Function words that have no part in vectors; English ones have theirs."""
    return frozenset() if language == ENGLISH else FUNCTION_WORDS[language]


class KnownTexts:
    """Texts of a collection: counts of stems and vectors of features, by rows."""

    def __init__(self, read: Queries, size: int) -> None:
        self.counts = matrix_of(read.terms, size)
        self.vectors = matrix_of(read.vectors, size).astype(np.float32)

    def row(self, n: int) -> Queries:
        """One of them, as it was read; neither its text nor its words are kept."""
        terms, vectors = self.count_rows[n], self.vector_rows[n]
        return Queries([""], [()], Sparse.one(*terms), Sparse.one(*vectors), np.ones(1))

    @cached_property
    def count_rows(self) -> Rows:
        """The counts, to be asked by rows."""
        return Rows(self.counts)

    @cached_property
    def vector_rows(self) -> Rows:
        """The vectors, to be asked by rows."""
        return Rows(self.vectors)


def matrix_of(read: Sparse, size: int) -> sp.csr_array:
    """Rows of texts as a sparse matrix. (texts, features)"""
    return sp.csr_array((read.values, read.columns, read.bounds), shape=(read.count, size))
