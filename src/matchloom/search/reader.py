"""How the ranker reads a text: its stems, and a vector of words and letters.

    words    stems, one and two in a row
    letters  two to five in a row within a word, its ends marked: they catch typing errors and other forms of a word
    value    (1 + ln count) * idf, each of the two blocks scaled to length sqrt(1/2)
    idf      ln((1 + A) / (1 + df)) + 1, where df counts ANSWERS that have it, in a question of theirs or in their text

Counting answers and not texts keeps a word that many questions of one answer share from looking common.
Letters are counted as words times the letters of each word, one sparse product. Large collections are not read `whole`:
the texts of answers have no letters (there are hundreds in each, and they say little about a long text), and no two
stems count as one (millions of pairs, most of them seen once, changed nothing on InsuranceQA).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.basics.progress import track
from matchloom.search.entries import Floats, Ids
from matchloom.text.tokenize import Tokenizer, stem

T = TypeVar("T")
_LETTERS = (2, 3, 4, 5)


@dataclass(frozen=True, eq=False)
class Query:
    """A question, or a text, as it is read once: for every feature, for its probability and for its explanation.

    `terms` and `counts` are its different stems and how often it has each, `features` and `values` its vector; both are
    ordered by number. Known texts of a collection have neither `text` nor `words`.
    """

    terms: Ids
    counts: Floats
    features: Ids
    values: Floats
    text: str = ""
    words: Sequence[str] = ()
    _own: dict[str, Any] = field(default_factory=dict, repr=False)

    def once(self, name: str, make: Callable[[str], T]) -> T:
        """What `make` does of the text, made when it is first asked for: for features that read it in their own way."""
        if name not in self._own:
            self._own[name] = make(self.text)
        found: T = self._own[name]
        return found


class ReadTexts(NamedTuple):
    """Many texts: counts of stems (texts, stems) and vectors (texts, features), both in CSR with sorted columns."""

    counts: sp.csr_array
    vectors: sp.csr_array

    def row(self, n: int) -> Query:
        """One of them."""
        found = []
        for matrix in self:
            cut = slice(matrix.indptr[n], matrix.indptr[n + 1])
            found += [matrix.indices[cut].astype(np.int64), matrix.data[cut].astype(np.float64)]
        return Query(*found)


def letters_of(word: str) -> list[str]:
    """The letters of a word, two to five in a row, with a space at either end.

    >>> letters_of("ab")
    [' a', 'ab', 'b ', ' ab', 'ab ', ' ab ']
    """
    marked = f" {word} "
    return [marked[i : i + n] for n in _LETTERS for i in range(len(marked) - n + 1)]


class Reader:
    """What is known of stems, pairs of stems and letters of a collection. Features are numbered in this order."""

    def __init__(self, tokenizer: Tokenizer, *, whole: bool = True) -> None:
        self.tokenizer = tokenizer
        self.whole = whole
        self.stems: dict[str, int] = {}
        self.two: dict[tuple[int, int], int] = {}
        self.letters: dict[str, int] = {}
        self.idf: Floats = np.empty(0)
        self._letters_from = 0

    @classmethod
    def fit(
        cls,
        tokenizer: Tokenizer,
        questions: Sequence[str],
        texts: Sequence[str],
        member: sp.csr_array,
        *,
        whole: bool = True,
        progress: bool = False,
    ) -> tuple[Reader, ReadTexts, ReadTexts]:
        """The reading of a collection, its known questions and its answers' texts; `member` is (questions, answers)."""
        self = cls(tokenizer, whole=whole)
        words = [tokenizer(text) for text in track([*questions, *texts], "reading", show=progress)]
        for word in dict.fromkeys(chain.from_iterable(words)):
            self.stems.setdefault(stem(word), len(self.stems))
        for word in dict.fromkeys(chain.from_iterable(words if whole else words[: len(questions)])):
            for gram in letters_of(word):
                self.letters.setdefault(gram, len(self.letters))
        for row in words if whole else ():
            for both in pairwise(self.stems[stem(word)] for word in row):
                self.two.setdefault(both, len(self.two))
        self._letters_from = len(self.stems) + len(self.two)
        n = len(questions)
        asked, answered = self._count(words[:n]), self._count(words[n:], letters=whole)
        documents = (member.T.tocsr() @ asked + answered).tocsc()
        df = np.diff(documents.indptr)
        del documents
        self.idf = np.log((1 + len(texts)) / (1 + df)) + 1
        return self, self._read(asked), self._read(answered)

    def read(self, question: str) -> Query:
        """A question; what the collection does not hold is left out."""
        return self._read_one(question, letters=True)

    def read_text(self, text: str) -> Query:
        """A text that may answer one."""
        return self._read_one(text, letters=self.whole)

    def _read_one(self, text: str, *, letters: bool) -> Query:
        """A row of `_read`, without the matrices that only pay for many texts."""
        words = self.tokenizer(text)
        terms = self.terms(words)
        found = Counter(term for term in terms if term >= 0)
        start = len(self.stems)
        found.update(start + self.two[both] for both in pairwise(terms) if both in self.two)
        if letters:
            known, start = self.letters, self._letters_from
            found.update(start + known[gram] for word in words for gram in letters_of(word) if gram in known)
        numbers = sorted(found)
        features = np.array(numbers, dtype=np.int64)
        counts = np.array([found[n] for n in numbers], dtype=np.float64)
        block = (features >= self._letters_from).astype(np.int64)
        own = features < len(self.stems)
        values = self._values(features, counts, block).astype(np.float64)
        return Query(features[own], counts[own], features, values, text, words)

    def _values(self, features: Ids, counts: Floats, block: Ids) -> NDArray[np.float32]:
        """(1 + ln count) * idf, each block scaled to the same length."""
        values = (1 + np.log(counts)) * self.idf[features]
        squares = np.bincount(block, values**2)
        scaled: NDArray[np.float32] = (values / np.sqrt(2 * squares)[block]).astype(np.float32)
        return scaled

    def coverage(self, query: Query) -> float:
        """The part of a question's different stems and letters that the collection has."""
        words = query.words
        stems, letters = {stem(word) for word in words}, {gram for word in words for gram in letters_of(word)}
        known = len(stems & self.stems.keys()) + len(letters & self.letters.keys())
        return known / max(1, len(stems) + len(letters))

    def left_coverage(self, features: Ids, times: Ids) -> float:
        """The same for a known question if it were not known; `times` is in how many texts each feature stands."""
        kept = features[(features < len(self.stems)) | (features >= self._letters_from)]
        return float((times[kept] > 1).sum()) / max(1, len(kept))

    def terms(self, words: Sequence[str]) -> list[int]:
        """The number of each word's stem, -1 for those that are not known."""
        return [self.stems.get(stem(word), -1) for word in words]

    def places(self, words: Sequence[str]) -> dict[int, list[tuple[int, ...]]]:
        """Where each feature stands: for each of its occurrences the positions of its words."""
        found: dict[int, list[tuple[int, ...]]] = {}
        terms = self.terms(words)
        for i, word in enumerate(words):
            if terms[i] >= 0:
                found.setdefault(terms[i], []).append((i,))
            for gram in letters_of(word):
                if gram in self.letters:
                    found.setdefault(self._letters_from + self.letters[gram], []).append((i,))
        for i, both in enumerate(pairwise(terms)):
            if both in self.two:
                found.setdefault(len(self.stems) + self.two[both], []).append((i, i + 1))
        return found

    def _count(self, texts: Sequence[Sequence[str]], *, letters: bool = True) -> sp.csr_array:
        """How often each feature stands in each text, as tokenised words."""
        index: dict[str, int] = {}
        flat = np.array([index.setdefault(w, len(index)) for w in chain.from_iterable(texts)], dtype=np.int64)
        lengths = np.array([len(words) for words in texts], dtype=np.int64)
        rows = np.repeat(np.arange(len(texts)), lengths)
        stem_of = np.array(self.terms(list(index)), dtype=np.int64)
        words = _matrix(rows, flat, (len(texts), len(index)))
        one = words @ _matrix(*_known(stem_of), (len(index), len(self.stems)))
        starts = np.flatnonzero(rows[1:] == rows[:-1])
        pairs = zip(stem_of[flat[starts]].tolist(), stem_of[flat[starts + 1]].tolist(), strict=True)
        both = np.array([self.two.get(pair, -1) for pair in pairs], dtype=np.int64)
        kept = both >= 0
        two = _matrix(rows[starts][kept], both[kept], (len(texts), len(self.two)))
        spelt = index if letters else ()
        grams = [[self.letters[gram] for gram in letters_of(word) if gram in self.letters] for word in spelt]
        owners = np.repeat(np.arange(len(grams)), [len(row) for row in grams])
        columns = np.array(list(chain.from_iterable(grams)), dtype=np.int64)
        inside = words @ _matrix(owners, columns, (len(index), len(self.letters)))
        counted = sp.hstack([one, two, inside], format="csr")
        counted.sort_indices()
        return counted

    def _read(self, counts: sp.csr_array) -> ReadTexts:
        terms = counts[:, : len(self.stems)].astype(np.float64)
        vectors = counts.astype(np.float32)
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        block = rows * 2 + (counts.indices >= self._letters_from)
        vectors.data = self._values(counts.indices, counts.data.astype(np.float64), block)
        return ReadTexts(terms, vectors)


def _matrix(rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]) -> sp.csr_array:
    """Counts of (row, column)."""
    made = sp.csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=shape)
    made.sum_duplicates()
    return made


def _known(numbers: Ids) -> tuple[Ids, Ids]:
    places = np.flatnonzero(numbers >= 0)
    return places, numbers[places]
