"""Lexical scorers that live in a folder: a name, a tokenizer and word counts, saved as one artifact."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from matchloom.artifact import as_saved, read, write
from matchloom.lexical import BM25, Overlap, WordStatistics
from matchloom.text.tokenize import Tokenizer
from matchloom.types import MatchloomError, Pair, Scorer, Scores, Signal, Trace

COUNTS, FORMAT = "counts.json", 2  # 1 was one safetensors file
REMEDY = "fit or copy it again"


class OverlapBoth:
    """IDF overlap without a direction: the mean of the query's words in the text and of the text's in the query."""

    name = "overlap_both"

    def __init__(self, overlap: Overlap) -> None:
        self._overlap = overlap

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """Between 0 and 1."""
        there = self._overlap.score(pairs, progress=progress)
        back = self._overlap.score([swapped(pair) for pair in pairs], progress=progress)
        return (there + back) / np.float32(2)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """Two maps: the query's words in the text, and the text's in the query."""
        left, right, there = self._overlap.trace(query, text)
        _, _, back = self._overlap.trace(text, query)
        signals = [s._replace(contribution=s.contribution / 2) for s in there.signals]
        signals += [Signal(s.right, s.left, 1, s.value, s.contribution / 2) for s in back.signals]
        grid = np.concatenate([there.grid, back.grid.transpose(0, 2, 1)])
        score, residual = (there.score + back.score) / 2, (there.residual + back.residual) / 2
        return left, right, Trace(score, signals, residual, grid, ["query's words", "text's words"])


def swapped(pair: Pair) -> Pair:
    """The pair with its sides exchanged."""
    return pair._replace(query=pair.text, text=pair.query)


def _bm25(statistics: WordStatistics, tokenizer: Tokenizer, stem: bool, *, normalize: bool = False) -> BM25:
    return BM25(statistics, tokenizer=tokenizer, stem=stem, stop_words=stem, normalize=normalize)


_MAKE: dict[str, Callable[[WordStatistics, Tokenizer], Any]] = {
    "bm25": lambda counts, words: _bm25(counts, words, stem=False),
    "bm25_stemmed": lambda counts, words: _bm25(counts, words, stem=True),
    "normalized_bm25": lambda counts, words: _bm25(counts, words, stem=True, normalize=True),
    "overlap": lambda counts, words: Overlap(counts, tokenizer=words),
    "overlap_both": lambda counts, words: OverlapBoth(Overlap(counts, tokenizer=words)),
}
_STEMMED = ("bm25_stemmed", "normalized_bm25")


class WordScorer:
    """A scorer with no network, by its name, that can be saved.

    >>> scorer = WordScorer.fit("overlap_both", ["a loom weaves cloth", "a mill grinds corn"], Tokenizer())
    >>> scorer.score([Pair("loom weaves", "loom weaves"), Pair("loom", "mill")])
    array([1., 0.], dtype=float32)
    """

    def __init__(self, name: str, collection: WordStatistics, tokenizer: Tokenizer) -> None:
        if name not in _MAKE:
            raise MatchloomError(f"word scorer {name!r} is unknown; choose one of {', '.join(_MAKE)}")
        self.name = name
        self.collection = collection
        self.tokenizer = tokenizer
        self._scorer = _MAKE[name](collection, tokenizer)

    @classmethod
    def fit(cls, name: str, texts: Iterable[str], tokenizer: Tokenizer) -> WordScorer:
        """Take document frequencies and the mean length from these texts."""
        if name in _STEMMED:
            return cls(name, BM25.fit(texts, tokenizer=tokenizer, stem=True, stop_words=True).collection, tokenizer)
        return cls(name, WordStatistics.count(tokenizer(text) for text in texts), tokenizer)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair; it depends on that pair and the counts only."""
        scorer: Scorer = self._scorer
        return scorer.score(pairs, progress=progress)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The words that met and what each added."""
        found: tuple[list[str], list[str], Trace] = self._scorer.trace(query, text)
        return found

    def save(self, folder: Path | str) -> None:
        """Write its name, its tokenizer and the counts."""
        settings = {"name": self.name, "tokenizer": self.tokenizer._asdict()}
        write(folder, "words", FORMAT, settings, {COUNTS: dump_collection(self.collection)})

    @classmethod
    def load(cls, folder: Path | str) -> WordScorer:
        """Read what `save` wrote; what is missing, altered or newer is refused in one line."""
        saved = read(folder, "words", FORMAT, remedy=REMEDY)
        with as_saved(folder, REMEDY):
            collection = load_collection(saved.content(COUNTS))
            return cls(saved.settings["name"], collection, Tokenizer.from_dict(saved.settings["tokenizer"]))


def dump_collection(collection: WordStatistics) -> bytes:
    """A collection's counts as JSON, by word."""
    counts = dict(sorted(collection.frequencies.items()))
    whole = {"texts": collection.texts, "mean_length": collection.mean_length, "frequencies": counts}
    return (json.dumps(whole, ensure_ascii=False, indent=0) + "\n").encode(errors="replace")


def load_collection(content: bytes) -> WordStatistics:
    """What `dump_collection` wrote; anything else is refused."""
    try:
        counts = msgspec.json.decode(content, type=_Counts)
    except msgspec.MsgspecError as error:
        raise MatchloomError(f"{COUNTS} does not hold counts of words: {error}; {REMEDY}") from None
    return WordStatistics(counts.texts, counts.mean_length, counts.frequencies)


class _Counts(msgspec.Struct):
    """How counts.json must look."""

    texts: Annotated[int, msgspec.Meta(ge=1)]
    mean_length: Annotated[float, msgspec.Meta(gt=0)]
    frequencies: dict[str, Annotated[int, msgspec.Meta(ge=0)]]
