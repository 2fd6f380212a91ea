"""The words of many texts as numbers, and how often each text has each feature of its words.

Lists of words take some sixty bytes a word, numbers four. What a word is made of (its stem, its n-grams) is found once
for each different word; sparse products count it in texts, some thousands at a time, so that a million texts need
little more memory than what is kept of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from matchloom.lexical.columns import Ids

AT_ONCE = 4_000  # texts that are counted together


class TextWords(Sequence[Sequence[str]]):
    """The words of some texts, each as a number of the different ones, which stand in the order in which they came."""

    def __init__(self, different: Sequence[str], numbers: NDArray[np.int32], starts: Ids) -> None:
        self.different = different
        self.numbers = numbers
        self.starts = starts

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]]) -> TextWords:
        """From the words of each text, of which one is in memory at a time."""
        known: dict[str, int] = {}
        numbers, starts = array("i"), array("q", [0])
        for words in texts:
            numbers.extend([known.setdefault(word, len(known)) for word in words])
            starts.append(len(numbers))
        return cls(list(known), np.array(numbers, dtype=np.int32), np.array(starts, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, n: int) -> list[str]: ...

    @overload
    def __getitem__(self, n: slice) -> TextWords: ...

    def __getitem__(self, n: int | slice) -> list[str] | TextWords:
        if isinstance(n, slice):
            first, last, _ = n.indices(len(self))
            starts = self.starts[first : last + 1]
            return TextWords(self.different, self.numbers[starts[0] : starts[-1]], starts - starts[0])
        different = self.different
        return [different[one] for one in self.numbers[self.starts[n] : self.starts[n + 1]].tolist()]

    def __iter__(self) -> Iterator[list[str]]:
        return (self[n] for n in range(len(self)))

    @property
    def beside(self) -> Ids:
        """Where a word stands that has another one of its text behind it."""
        followed = np.ones(len(self.numbers), dtype=bool)
        followed[self.starts[1:][self.starts[1:] > 0] - 1] = False
        return np.flatnonzero(followed)


class WordFeatures(NamedTuple):
    """The numbers of what different words are made of, and of the pairs of stems that stand beside each other."""

    size: int  # of all numbers
    stems: Ids  # (words,)
    table: sp.csr_array  # (words, features) stems and n-grams
    pairs: Ids | None  # of each word that has another behind it; None where pairs do not count

    def counts(self, words: TextWords, first: int, last: int, *, ngrams: bool) -> sp.csr_array:
        """How often texts have each feature, in single precision; whole numbers are exact. (texts, features)"""
        own = words[first:last]
        pairs = None if self.pairs is None else _by_text(words, self.pairs, self.size)[first:last]
        blocks = (
            self._counts(own[rows], None if pairs is None else pairs[rows], ngrams) for rows in blocks_of(len(own))
        )
        lengths = np.diff(self.table.indptr) if ngrams else np.ones(len(words.different), dtype=np.int64)
        most = int(lengths[own.numbers].sum()) + (0 if pairs is None else pairs.nnz)
        return stacked(blocks, len(own), self.size, most)

    def _counts(self, words: TextWords, pairs: sp.csr_array | None, ngrams: bool) -> sp.csr_array:
        ones = np.ones(len(words.numbers), dtype=np.float32)
        if ngrams:
            found = sp.csr_array((ones, words.numbers, words.starts), shape=(len(words), len(self.stems))) @ self.table
        else:
            found = sp.csr_array((ones, self.stems[words.numbers], words.starts), shape=(len(words), self.size))
        if pairs is not None:
            found = found + pairs
        found.sum_duplicates()
        return found


def _by_text(words: TextWords, pairs: Ids, size: int) -> sp.csr_array:
    """Numbers that stand between two words, by text. (texts, features)"""
    starts = np.searchsorted(words.beside, words.starts)
    return sp.csr_array((np.ones(len(pairs), dtype=np.float32), pairs, starts), shape=(len(words), size))


def stacked(blocks: Iterable[sp.csr_array], rows: int, columns: int, most: int) -> sp.csr_array:
    """Blocks of rows as one matrix in single precision, of `most` entries or fewer: no two copies are in memory."""
    narrow = np.int32 if max(most, columns) < 2**31 else np.int64
    starts = np.zeros(rows + 1, dtype=narrow)
    places, data = np.empty(most, dtype=narrow), np.empty(most, dtype=np.float32)
    row = at = 0
    for block in blocks:
        count = block.nnz
        starts[row + 1 : row + 1 + block.shape[0]] = block.indptr[1:] + at
        places[at : at + count], data[at : at + count] = block.indices, block.data
        row, at = row + block.shape[0], at + count
    return sp.csr_array((data[:at], places[:at], starts), shape=(rows, columns))


def blocks_of(rows: int) -> Iterator[slice]:
    """All rows, some at a time."""
    return (slice(start, min(start + AT_ONCE, rows)) for start in range(0, rows, AT_ONCE))


def by_entry(member: sp.csr_array, questions: sp.csr_array) -> sp.csr_array:
    """Which questions each entry has, numbered as `questions` are: else each product would copy these. (A, N)"""
    made = member.T.tocsr().astype(np.float32)
    kind = questions.indices.dtype
    made.indices, made.indptr = made.indices.astype(kind, copy=False), made.indptr.astype(kind, copy=False)
    return made


def document_frequencies(member: sp.csr_array, questions: sp.csr_array, texts: sp.csr_array) -> Ids:
    """How many entries have each feature, in a question or in their text; `member` is (questions, entries)."""
    owners = by_entry(member, questions)
    found = np.zeros(texts.shape[1], dtype=np.int64)
    for own in blocks_of(texts.shape[0]):
        documents = owners[own] @ questions + texts[own]
        found += np.bincount(documents.indices, minlength=len(found))
    return found
