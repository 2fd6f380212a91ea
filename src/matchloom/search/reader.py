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

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, pairwise
from threading import local
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.basics.progress import track
from matchloom.lexical.columns import Floats, Ids
from matchloom.lexical.ranking import NGRAM, TERM, TWO, Weighing
from matchloom.search.arrays import Texts
from matchloom.search.queries import KnownTexts, Queries, matrix_of
from matchloom.search.words import TextWords, WordFeatures, blocks_of, document_frequencies
from matchloom.text.languages import ENGLISH, FUNCTION_WORDS
from matchloom.text.tokenize import Tokenizer, stem

T = TypeVar("T")
Positions = dict[int, list[tuple[int, ...]]]  # of each feature, for each occurrence the positions of its words
NGRAMS = (2, 3, 4, 5)
_REMEMBERED = 50_000  # words whose features are kept
_LONGEST = 40  # characters of such a word


def ngrams_of(word: str) -> list[str]:
    """The n-grams of a word, two to five characters, with a space at either end.

    >>> ngrams_of("ab")
    [' a', 'ab', 'b ', ' ab', 'ab ', ' ab ']
    """
    marked = f" {word} "
    return [marked[i : i + n] for n in NGRAMS for i in range(len(marked) - n + 1)]


class _Word(NamedTuple):
    stem: int  # -1 for one that is not known
    ngrams: NDArray[np.int64]
    plain: bytes  # the stem's number
    whole: bytes  # and those of the n-grams
    name: str  # the stem itself
    content: bool  # whether it is no function word


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
    ) -> tuple[KnownTexts, KnownTexts]:
        """Learn from a collection, and read its questions and texts; `member` is (questions, entries)."""
        words, asked, in_texts = self._numbered(questions, texts, progress)
        self.idf = np.log((1 + len(texts)) / (1 + document_frequencies(member, asked, in_texts))) + 1
        self.idf[self._silent_features(0, self.stems, self.two)] = 0
        self._new_idf = float(np.log((1 + len(texts)) / 2) + 1)
        self._fitted = self.size
        count = len(questions)
        return self._weighed(questions, words[:count], asked), self._weighed(texts, words[count:], in_texts)

    def extend(self, questions: Sequence[str], texts: Sequence[str]) -> tuple[KnownTexts, KnownTexts]:
        """Read the questions and texts of new entries, of which everything that is new gets a number."""
        words, asked, in_texts = self._numbered(questions, texts)
        count = len(questions)
        return self._weighed(questions, words[:count], asked), self._weighed(texts, words[count:], in_texts)

    def _numbered(
        self, questions: Sequence[str], texts: Sequence[str], progress: bool = False
    ) -> tuple[TextWords, sp.csr_array, sp.csr_array]:
        """The words of all, and how often questions and texts have each feature."""
        both, count = chain(questions, texts), len(questions)
        shown = track(both, "reading", total=count + len(texts), show=progress)
        words = TextWords.of(self.tokenizer(text) for text in shown)
        features = self._number(words, count)
        asked = features.counts(words, 0, count, ngrams=True)
        return words, asked, features.counts(words, count, len(words), ngrams=self.whole)

    def _number(self, words: TextWords, count: int) -> WordFeatures:
        """Give numbers to what has none: all stems, then all pairs of stems, then all n-grams.

        The first `count` texts are questions. Searches may go on meanwhile, so that what belongs to a number is there
        before the number is.
        """
        before, language = self.size, self.tokenizer.language
        own = [stem(word, language) for word in words.different]
        stems = _numbers(own, self.stems, before)
        number = np.array([self.stems.get(one, stems.get(one, -1)) for one in own], dtype=np.int64)
        two: dict[tuple[int, int], int] = {}
        pairs = None
        if self.whole:
            two, pairs = self._pairs(words, number, before + len(stems))
        asked = int(words.numbers[: words.starts[count]].max(initial=-1)) + 1
        spelt = [self._grams(word) for word in (words.different if self.whole else words.different[:asked])]
        ngrams = _numbers(chain.from_iterable(spelt), self.ngrams, before + len(stems) + len(two))
        size = before + len(stems) + len(two) + len(ngrams)
        spelt += [[]] * (len(own) - len(spelt))
        known = self.ngrams
        places = array("q")
        for one, grams in zip(number.tolist(), spelt, strict=True):
            places.append(one)
            places.extend([known[gram] if gram in known else ngrams[gram] for gram in grams])
        starts = np.concatenate([[0], np.cumsum([1 + len(grams) for grams in spelt])])
        ones = np.ones(len(places), dtype=np.float32)
        table = sp.csr_array((ones, np.array(places, dtype=np.int64), starts), shape=(len(own), size))
        self._take(stems, two, ngrams)
        return WordFeatures(size, number, table, pairs)

    def _pairs(self, words: TextWords, number: Ids, start: int) -> tuple[dict[tuple[int, int], int], Ids]:
        """Numbers for pairs of stems that have none, and the number of each pair where it stands."""
        first = words.beside
        left, right = number[words.numbers[first]], number[words.numbers[first + 1]]
        base = int(number.max(initial=0)) + 1
        keys, at, places = np.unique(left * base + right, return_index=True, return_inverse=True)
        order = np.argsort(at)  # as they came
        came = list(zip((keys[order] // base).tolist(), (keys[order] % base).tolist(), strict=True))
        two = _numbers(came, self.two, start)
        own = np.empty(len(keys), dtype=np.int64)
        own[order] = [self.two.get(pair, two.get(pair, -1)) for pair in came]
        return two, own[places]

    def _take(self, stems: dict[str, int], two: dict[tuple[int, int], int], ngrams: dict[str, int]) -> None:
        """From now on these have numbers, too."""
        kinds = np.repeat(np.array([TERM, TWO, NGRAM], dtype=np.uint8), (len(stems), len(two), len(ngrams)))
        idf = np.concatenate([self.idf, np.full(len(kinds), self._new_idf)])
        idf[self._silent_features(self.size, {**self.stems, **stems}, two)] = 0
        self.idf = idf
        self.kinds = np.concatenate([self.kinds, kinds])
        self.stems.update(stems)
        self.two.update(two)
        self.ngrams.update(ngrams)
        self._words = {}

    def _weighed(self, texts: Sequence[str], words: TextWords, counts: sp.csr_array) -> KnownTexts:
        """What is kept of texts; `counts` become their vectors."""
        weighing, terms = self._weighing(), []
        for own in blocks_of(len(texts)):
            bounds = counts.indptr[own.start : own.stop + 1].astype(np.int64)
            here = slice(int(bounds[0]), int(bounds[-1]))
            read = weighing.weighed(
                bounds - bounds[0], counts.indices[here].astype(np.int64), counts.data[here].astype(np.float64)
            )
            counts.data[here] = read.vectors.values
            made = matrix_of(read.terms, self.size)
            made.indices, made.indptr = made.indices.astype(np.int32), made.indptr.astype(np.int32)
            terms.append(made)
        stems = sp.vstack(terms, format="csr") if terms else sp.csr_array((0, self.size))
        return KnownTexts(texts, words, stems, counts)

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
        sizes, coverage = [], np.zeros(len(words))
        known, two, start = self._words, self.two, 0
        for n, own in enumerate(words):
            read = [known.get(word) or self._word(word) for word in own]
            parts += [one.plain for one in read] if answers and not self.whole else [one.whole for one in read]
            if two:
                numbers = [two[pair] for pair in pairwise(one.stem for one in read) if pair in two]
                parts.append(np.array(numbers, dtype=np.int64).tobytes() if numbers else b"")
            size = sum(map(len, parts[start:])) // 8
            sizes.append(size)
            start = len(parts)
            known_stems = {one.name: one.stem >= 0 for one in read if one.content}
            coverage[n] = sum(known_stems.values()) / max(1, len(known_stems))
        made = self._weighing().read(sizes, b"".join(parts))
        return Queries(texts, words, made.terms, made.vectors, coverage)

    def _word(self, word: str) -> _Word:
        remembered = self._words  # another takes its place when there are more numbers
        own = stem(word, self.tokenizer.language)
        grams = self._grams(word)
        numbers = [self.ngrams[gram] for gram in grams if gram in self.ngrams]
        number = self.stems.get(own, -1)
        plain, ngrams = np.array([number][: number >= 0], dtype=np.int64), np.array(numbers, dtype=np.int64)
        content = own not in self._function_stems
        made = _Word(number, ngrams, plain.tobytes(), plain.tobytes() + ngrams.tobytes(), own, content)
        if len(word) <= _LONGEST:
            if len(remembered) >= _REMEMBERED:
                self._words = remembered = {}
            remembered[word] = made
        return made

    def _weighing(self) -> Weighing:
        """How features are weighed; another where there are more numbers."""
        made = self._weighs
        if made is None or made.idf is not self.idf or made.kinds is not self.kinds:
            made = self._weighs = Weighing(self.kinds, self.idf, factor=2.0, single=True)
        return made

    def coverage_without(self, features: Ids, times: Ids) -> float:
        """The coverage of a known question if it were not known; `times` is in how many texts each feature stands."""
        stems = features[self.kinds[features] == TERM]
        kept = stems[~np.isin(stems, self._function_numbers)]
        return float((times[kept] > 1).sum()) / max(1, len(kept))

    @cached_property
    def _function_stems(self) -> frozenset[str]:
        language = self.tokenizer.language
        return frozenset(stem(word, language) for word in FUNCTION_WORDS.get(language, ()))

    @cached_property
    def _function_numbers(self) -> Ids:
        """The numbers of function words, as they were when texts were learnt from."""
        return np.array(sorted(self.stems[one] for one in self._function_stems & self.stems.keys()), dtype=np.int64)

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


def _numbers(found: Iterable[T], known: Mapping[T, int], start: int) -> dict[T, int]:
    """Numbers from `start` on for what has none, in the order in which it comes."""
    new = dict.fromkeys(one for one in found if one not in known)
    return {one: number for number, one in enumerate(new, start=start)}


def silent_words(language: str) -> frozenset[str]:
    """Function words that have no part in vectors; English ones have theirs."""
    return frozenset() if language == ENGLISH else FUNCTION_WORDS[language]
