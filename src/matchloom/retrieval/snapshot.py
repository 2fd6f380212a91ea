"""What a search looks at and what it gives: one version of an archive, what was counted in it, and answers."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np

from matchloom.explanation import Explanation
from matchloom.matcher import Matcher
from matchloom.retrieval.manifest import ArchiveManifest
from matchloom.retrieval.store import Store, Vectors
from matchloom.types import MatchloomError, Scorer, Scores

T = TypeVar("T")

_SMALL = 1000  # pairs that are counted again after every write


class Added(NamedTuple):
    """What became of pairs that were added."""

    new: int
    replaced: int  # took the place of a pair with the same id
    wrong: int  # have label 0, and were left out


class Answer(NamedTuple):
    """An archived pair that was found: its score, and the two parts that it is mixed from."""

    id: str
    question: str
    answer: str
    score: float
    similarity: float  # of the new question and this one
    match: float  # of the new question and this answer
    explanation: Explanation | None = None  # of `match`


class Snapshot(NamedTuple):
    """One version of the archive with what encodes it, whatever others write meanwhile."""

    manifest: ArchiveManifest
    store: Store
    matcher: Matcher | None

    def vector(self, question: str) -> Vectors | None:
        """v_t, where the archive has vectors."""
        if self.matcher is None or self.manifest.vector_size is None:
            return None
        return np.asarray(self.matcher.vectors([question])[0], np.float32)


class MixtureScores(NamedTuple):
    """The parts of the scores of some rows, and the scorer that made the second."""

    similarity: Scores
    match: Scores
    scorer: Scorer


class Gathered(Generic[T]):
    """What was gathered from a sample of the archive, and when it should be gathered again."""

    def __init__(self, value: T, snapshot: Snapshot) -> None:
        self.value = value
        self._manifest, self._rows = snapshot.manifest, len(snapshot.store)

    def stale(self, manifest: ArchiveManifest) -> bool:
        """Whether this is another table, or a tenth of its rows was written since; of a small one, any."""
        if manifest is self._manifest:
            return False
        written = abs(manifest.written - self._manifest.written)
        return (
            manifest.table != self._manifest.table
            or written * 10 > self._rows
            or (written > 0 and self._rows <= _SMALL)
        )


def check_search(question: str, top: int, candidates: int, alpha: float | None, rerank: Scorer | None) -> None:
    """Refuse what cannot be searched for, in one line."""
    if not isinstance(question, str) or not question.strip():
        raise MatchloomError(f"the question is {question!r}; expected a text")
    for name, count in (("top", top), ("candidates", candidates)):
        if not isinstance(count, int) or not 1 <= count < 2**31:
            raise MatchloomError(f"{name} is {count!r}; expected a number of at least 1")
    if alpha is not None and not (isinstance(alpha, int | float) and 0 <= alpha <= 1):
        raise MatchloomError(f"alpha is {alpha!r}; expected a number from 0 to 1")
    if rerank is not None and not isinstance(rerank, Scorer):
        raise MatchloomError(f"rerank is {rerank!r}; expected a scorer, such as a Matcher or BM25.fit(index.texts())")
