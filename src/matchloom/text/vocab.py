"""The words a matcher knows, how often each was seen and in how many texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matchloom.text.languages import ENGLISH
from matchloom.text.tokenize import stem
from matchloom.types import MatchloomError

PADDING, UNKNOWN = 0, 1
_FIRST = 2  # the id of the first real word
_HEADER = "#matchloom-vocabulary"


@dataclass(frozen=True)
class Vocab:
    """Words with their counts. Id 0 is padding, id 1 any unknown word, words start at 2."""

    words: list[str]
    counts: list[int]
    document_frequencies: list[int]
    documents: int
    _index: dict[str, int] = field(init=False, repr=False, compare=False)
    _stem_frequencies: dict[str, Counter[str]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        index = {word: i for i, word in enumerate(self.words, start=_FIRST)}
        if len(index) != len(self.words):
            raise MatchloomError("a vocabulary lists the same word twice", code="bad_value")
        object.__setattr__(self, "_index", index)

    def __repr__(self) -> str:
        return f"Vocab({len(self.words):,} words of {self.documents:,} texts)"

    @classmethod
    def build(cls, texts: Iterable[Sequence[str]], min_count: int = 1) -> Vocab:
        """Count the words of tokenised texts; words seen less than `min_count` times stay unknown."""
        counts: Counter[str] = Counter()
        frequencies: Counter[str] = Counter()
        documents = 0
        for words in texts:
            documents += 1
            counts.update(words)
            frequencies.update(set(words))
        # Most frequent first, then by spelling: the order of the texts must not show.
        kept = sorted((word for word, n in counts.items() if n >= min_count), key=lambda word: (-counts[word], word))
        return cls(kept, [counts[w] for w in kept], [frequencies[w] for w in kept], documents)

    def extended(self, words: Iterable[str]) -> Vocab:
        """The same with more words, which no text was seen to hold."""
        new = sorted({word for word in words if word not in self._index and not word.isspace() and word})
        zeros = [0] * len(new)
        return Vocab(self.words + new, self.counts + zeros, self.document_frequencies + zeros, self.documents)

    def __len__(self) -> int:
        """How many ids there are, padding and unknown included."""
        return len(self.words) + _FIRST

    def __contains__(self, word: object) -> bool:
        return word in self._index

    def ids(self, words: Iterable[str]) -> list[int]:
        """The id of each word."""
        get = self._index.get
        return [get(word, UNKNOWN) for word in words]

    def idf(self, word: str) -> float:
        """Rarity of a word between 0 (in every text) and 1 (in none)."""
        i = self._index.get(word)
        return self._scaled(self.document_frequencies[i - _FIRST] if i is not None else 0)

    def stem_idf(self, stemmed: str, language: str = ENGLISH) -> float:
        """Rarity of a stem, by the texts that hold any word with that stem (a word's texts counted for each word)."""
        if language not in self._stem_frequencies:
            self._stem_frequencies[language] = self._count_stems(language)
        return self._scaled(min(self.documents, self._stem_frequencies[language].get(stemmed, 0)))

    def _scaled(self, frequency: int) -> float:
        if not self.documents:
            return 1.0
        return math.log((self.documents + 1) / (frequency + 1)) / math.log(self.documents + 1)

    def _count_stems(self, language: str) -> Counter[str]:
        frequencies: Counter[str] = Counter()
        for word, frequency in zip(self.words, self.document_frequencies, strict=True):
            frequencies[stem(word, language)] += frequency
        return frequencies

    def dumps(self) -> str:
        """The text of a vocabulary file: a header with the numbers of words and texts, then a line for each word."""
        rows = zip(self.words, self.counts, self.document_frequencies, strict=True)
        return "".join(
            [f"{_HEADER}\t{len(self.words)}\t{self.documents}\n", *(f"{w}\t{n}\t{df}\n" for w, n, df in rows)]
        )

    @classmethod
    def load(cls, path: Path) -> Vocab:
        """Read a vocabulary file."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise MatchloomError(f"{path} cannot be read as a vocabulary: {error}", code="unreadable") from None
        return cls.loads(content, path)

    @classmethod
    def loads(cls, content: bytes, path: Path) -> Vocab:
        """What `dumps` gave; `path` is the file that it was read from, for messages."""
        # Not splitlines(): a word may hold one of the rarer line separators of Unicode.
        try:
            lines = content.decode().split("\n")
        except UnicodeDecodeError as error:
            raise MatchloomError(f"{path} cannot be read as a vocabulary: {error}", code="damaged") from None
        head = lines[0].split("\t")
        whole = len(head) == 3 and head[1].isdecimal() and head[2].isdecimal() and int(head[1]) == len(lines) - 2
        if head[0] != _HEADER or not whole or lines[-1] != "":
            raise MatchloomError(
                f"{path} is no vocabulary of matchloom, or was cut off; save the matcher again", code="damaged"
            )
        words, counts, frequencies = [], [], []
        for number, line in enumerate(lines[1:-1], start=2):
            parts = line.split("\t")
            if len(parts) != 3 or not parts[1].isdecimal() or not parts[2].isdecimal():
                raise MatchloomError(
                    f"{path}, line {number}: expected word, count and texts, found {line[:60]!r}", code="bad_row"
                )
            words.append(parts[0])
            counts.append(int(parts[1]))
            frequencies.append(int(parts[2]))
        return cls(words, counts, frequencies, int(head[2]))
