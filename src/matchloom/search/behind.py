"""Behind an engine that is there already: it finds candidates, a scorer orders them and says why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from matchloom.basics.validation import at_least_one, one_text
from matchloom.calibration import relevance
from matchloom.explanation import explain
from matchloom.search.reranking import bm25_of, ranks_any_text
from matchloom.types import Calibrates, Explains, Hit, Hits, MatchloomError, Pair, Scorer

Candidate = Mapping[str, Any] | tuple[str, str]
Find = Callable[[str, int], Iterable[Candidate]]


class BehindEngine:
    """Searches by two stages: what `find` finds, ordered by a scorer.

    >>> from matchloom import BM25
    >>> texts = {"a": "use a loom", "b": "use a mill"}
    >>> engine = BehindEngine(lambda question, count: list(texts.items())[:count], BM25.fit(list(texts.values())))
    >>> engine.search("which mill?", top=1)[0].id
    'b'

    Args:
        find: Called with a question and how many candidates are wanted. It gives objects with `id` and `text`, whose
            other fields come back as the columns of a hit, or tuples of the two.
        scorer: What `load`, `fit` or `train` gives. One that knows its own answers only is replaced by BM25.
        candidates: How many to ask the engine for.
    """

    def __init__(self, find: Find, scorer: Scorer, *, candidates: int = 100) -> None:
        at_least_one("candidates", candidates)
        if not callable(find):
            raise MatchloomError(
                f"find is a {type(find).__name__}; expected a function of a question and a number", code="wrong_type"
            )
        self._find, self._scorer, self._count = find, scorer, candidates

    def search(self, question: str, *, top: int | None = 10, explain: bool = False) -> Hits:
        """The engine's candidates that fit a question best, each id once; equal scores are ordered by id.

        Args:
            question: The question.
            top: At most this many; None for all candidates.
            explain: Add to each why it got its score.
        """
        one_text("question", question)
        if top is not None:
            at_least_one("top", top)
        found = self._candidates(question)
        if not found:
            return Hits()
        texts = [text for text, _ in found.values()]
        scorer = self._scorer if ranks_any_text(self._scorer) else bm25_of(texts)
        scores = scorer.score([Pair(question, text) for text in texts])
        likely: list[float] | list[None] = [None] * len(texts)
        if isinstance(scorer, Calibrates) and scorer.threshold is not None:
            likely = relevance(scorer, scores).tolist()
        rows = zip(found.items(), scores.tolist(), likely, strict=True)
        best = sorted(rows, key=lambda row: (-row[1], row[0][0]))[:top]
        hits = Hits(
            Hit(name, text, score, chance, columns=columns or None) for (name, (text, columns)), score, chance in best
        )
        for n, hit in enumerate(hits if explain and isinstance(scorer, Explains) else ()):
            hits[n] = hit._replace(explanation=_why(scorer, question, hit.text))
        return hits

    def _candidates(self, question: str) -> dict[str, tuple[str, dict[str, str]]]:
        """Text and columns by id, at most as many as were asked for; the first of each id."""
        found: dict[str, tuple[str, dict[str, str]]] = {}
        for number, one in enumerate(self._find(question, self._count), start=1):
            if number > self._count:
                break
            own = dict(one) if isinstance(one, Mapping) else dict(zip(("id", "text"), one, strict=False))
            name, text = own.pop("id", None), own.pop("text", None)
            if name is None or not isinstance(text, str):
                raise MatchloomError(
                    f"candidate {number} of {question[:60]!r} has no id or no text; find gives objects with both, "
                    "or tuples of the two",
                    code="bad_row",
                )
            found.setdefault(str(name), (text, {key: str(value) for key, value in own.items() if value is not None}))
        return found


def _why(scorer: Any, question: str, text: str) -> Any:
    return explain(scorer, question, text)
