"""How a matcher reads: a text becomes positions, which are words, and for some encoders the pieces of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.basics.progress import track
from matchloom.data.features import FeatureTexts
from matchloom.data.tokenized import NO_WORD, Ragged, TokenizedTexts
from matchloom.text.tokenize import Span, Tokenizer, has_no_forms, replace_surrogates, stem, word_hash
from matchloom.text.vocab import Vocab

Faces = tuple[tuple[int, int, int], tuple[float, float, float]]
_MOST_KNOWN = 200_000  # words that are remembered


class WordPieces(NamedTuple):
    """The pieces of one text: their ids, and the position of the word that each belongs to, -1 for none."""

    ids: list[int]
    words: list[int]


class _Rows(dict[str, int]):
    """A number for each distinct word, in order of first appearance."""

    def __missing__(self, word: str) -> int:
        self[word] = row = len(self)
        return row


class _Known:
    """The faces of words that were looked at before, as arrays; threads share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._clear()

    def __reduce__(self) -> tuple[type[_Known], tuple[()]]:
        return _Known, ()  # a copy looks at words again

    def _clear(self) -> None:
        self._rows: dict[str, int] = {}
        self._keys, self._idf = np.empty((1024, 3), np.int64), np.empty((1024, 3), np.float32)

    def of(self, words: Sequence[str], faces: Callable[[str], Faces]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Those of these words, (W, 3) each; `faces` tells those of a new one."""
        with self._lock:
            if len(self._rows) > _MOST_KNOWN:
                self._clear()
            rows = self._rows
            found = [(word, *faces(word)) for word in dict.fromkeys(words) if word not in rows]
            if len(rows) + len(found) > len(self._keys):
                more = (max(len(found), len(self._keys)), 3)
                self._keys = np.concatenate([self._keys, np.empty(more, np.int64)])
                self._idf = np.concatenate([self._idf, np.empty(more, np.float32)])
            for word, keys, idf in found:
                self._keys[len(rows)], self._idf[len(rows)] = keys, idf
                rows[word] = len(rows)
            at = [rows[word] for word in words]
            return self._keys[at], self._idf[at]


@dataclass(frozen=True)
class Reader:
    """A tokenizer, the words that are known, and what splits a text into pieces where the encoder reads those.

    `pieces` gets the text and where its words stand in it: what lies between words, such as a question mark, says
    something to an encoder that has learnt from whole texts, though it is no word.
    """

    tokenizer: Tokenizer
    vocab: Vocab
    pieces: Callable[[str, Sequence[Span]], WordPieces] | None = None

    def read(
        self,
        texts: Sequence[str],
        *,
        lexical: bool = False,
        features: str = "",
        tokenize: Callable[[str], list[str]] | None = None,
        progress: bool = False,
    ) -> TokenizedTexts:
        """The texts as positions; with `lexical` and `features` what models that ask for these need.

        `tokenize` gives the words of a text, capitals included; without it the tokenizer does.
        """
        cased = [(tokenize or self.tokenizer.tokenize)(text) for text in track(texts, "reading texts", show=progress)]
        pieces = None
        if self.pieces is not None:
            found = [self.text_pieces(text) for text in texts]
            pieces = (Ragged.of([one.ids for one in found]), Ragged.of([one.words for one in found]))
        rows = _Rows()  # a table of the distinct words: each is looked at once
        index = np.array([rows[word] for text in cased for word in (text or ("",))], dtype=np.int64)
        lengths = np.array([len(text) or 1 for text in cased], dtype=np.int64)
        return self.read_words(list(rows), Ragged(index, lengths), lexical=lexical, features=features, pieces=pieces)

    def read_words(
        self,
        words: Sequence[str],
        texts: Ragged,
        *,
        lexical: bool = False,
        features: str = "",
        pieces: tuple[Ragged, Ragged] | None = None,
    ) -> TokenizedTexts:
        """Texts that were tokenised before: distinct words, capitals included ("" for none), and where they stand."""
        lower = self.tokenizer.lowercase(list(words))
        return TokenizedTexts(
            Ragged(np.array(self.vocab.ids(lower), dtype=np.int64)[texts.flat], texts.lengths),
            self._lexical(lower, texts.flat) if lexical else None,
            self._features(features, words, texts) if features else None,
            pieces,
        )

    def text_pieces(self, text: str) -> WordPieces:
        """The pieces of one text, for encoders that read them."""
        assert self.pieces is not None
        return self.pieces(*self._places(text))

    def _features(self, features: str, words: Sequence[str], texts: Ragged) -> FeatureTexts:
        cased = [
            [words[i] for i in texts.flat[start : start + length].tolist() if words[i]]
            for start, length in zip(texts.starts.tolist(), texts.lengths.tolist(), strict=True)
        ]
        lower, language = self.tokenizer.lower, self.tokenizer.language
        return FeatureTexts(features, cased, self.vocab, lower=lower, language=language)

    def _places(self, text: str) -> tuple[str, list[Span]]:
        """A text and its words' places in it; what is behind the last word that may be read is cut."""
        spans = self.tokenizer.spans(text)
        if spans and len(spans) == self.tokenizer.max_words:
            text = text[: spans[-1].end]
        return replace_surrogates(text), spans

    def _lexical(self, words: Sequence[str], index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The keys and the IDF of every word's three faces: itself, its stem, its start. (positions, 3) each

        A Chinese word is its own stem and, mostly, its own start: such faces have weight 0, or it would count thrice.
        English words that are their own stem keep all three, as other forms of them meet those.
        """
        keys, idf = self._known.of(words, self._faces)
        return keys[index], idf[index]

    @cached_property
    def _known(self) -> _Known:
        """Words that were looked at before, for the next texts."""
        return _Known()

    def _faces(self, word: str) -> Faces:
        """The keys and the IDF of one word's faces; "" stands for no word."""
        if not word:  # hashes are positive; no word is told apart by the side that it is on (`TokenizedTexts.pad`)
            return (NO_WORD, NO_WORD, NO_WORD), (0.0, 0.0, 0.0)
        language = self.tokenizer.language
        s, start = stem(word, language), word[:4]
        idf, own = self.vocab.stem_idf(s, language), word if has_no_forms(word) else None
        weights = (self.vocab.idf(word), 0.0 if s == own else idf, 0.0 if start == own else idf)
        return (word_hash(word), word_hash(s), word_hash(start)), weights
