"""BM25 where there is no network: how much of what a question asks for does a text hold?

    normalized(t, x) = BM25(t, x) / BM25(t, t)

Plain BM25 has no scale: it grows with the length of the question. Over what the question scores with itself it is 0
without a common word and 1 for the same text, as a cosine is, so that it can be mixed with other scores. Within one
question it ranks as BM25 does.

Words count by their stems, and English function words not at all: on SemEval-2016 3B, a whole archive searched, average
precision was .48 so and .39 with plain words (docs/results.md). The full-text index holds the stems of all words and is
asked for those that count: what function words find is half of the archive, and slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from matchloom.lexical import BM25, Words
from matchloom.lexical.collection import is_stop_word
from matchloom.text.tokenize import Tokenizer, stems
from matchloom.types import Component, Pair, Scores, Signal, Trace


class NormalizedBM25:
    """BM25 of a text over the question's own."""

    name = "normalized_bm25"

    def __init__(self, bm25: BM25) -> None:
        self._bm25 = bm25

    @property
    def tokenizer(self) -> Words:
        """How a text becomes words."""
        return self._bm25.tokenizer

    @classmethod
    def fit(cls, texts: Iterable[str], tokenizer: Tokenizer) -> NormalizedBM25:
        """Take document frequencies and the mean length from these texts."""
        return cls(BM25.fit(texts, tokenizer=tokenizer, stem=True, stop_words=True))

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One score for each pair; 0 for a question without words that count."""
        asked = {query: self._whole(query) for query in {pair.query for pair in pairs}}
        wholes = np.array([asked[pair.query] for pair in pairs], np.float32)
        return np.asarray(self._bm25.score(pairs, progress=progress) / wholes, np.float32)

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """BM25's own trace, with its contributions on our scale."""
        left, right, trace = self._bm25.trace(query, text)
        whole = self._whole(query)
        signals = [Signal(*signal[:4], signal.contribution / whole) for signal in trace.signals]
        components = [
            Component(component.name, component.value, component.contribution / whole) for component in trace.components
        ]
        return (
            left,
            right,
            trace._replace(
                score=trace.score / whole, residual=trace.residual / whole, signals=signals, components=components
            ),
        )

    def _whole(self, query: str) -> float:
        return float(self._bm25.score([Pair(query, query)])[0]) or 1.0


def asked(words: Sequence[str]) -> list[str]:
    """What the full-text index, which holds the stems of all words, is asked for: those that count, or else all.

    >>> asked(["how", "do", "looms", "work"]), asked(["how", "do", "you", "do"])
    (['loom', 'work'], ['how', 'do', 'you', 'do'])
    """
    return stems([word for word in words if not is_stop_word(word)] or words)
