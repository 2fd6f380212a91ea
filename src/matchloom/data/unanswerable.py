"""Questions of a file that have no answer: their text is blank, or it says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from matchloom.types import Pair

Row = TypeVar("Row")
NO_ANSWER = "no_answer"  # as a text or text_id


def is_unanswerable(pair: Pair) -> bool:
    """Whether a pair says that its question has no answer."""
    return bool(pair.query.strip()) and (
        not pair.text.strip() or pair.text.strip().lower() == NO_ANSWER or pair.text_id.lower() == NO_ANSWER
    )


def without_unanswerable(rows: Iterable[tuple[Pair, Row]]) -> tuple[list[tuple[Pair, Row]], list[str]]:
    """Rows of pairs with an answer, and the questions that have none.

    >>> kept, questions = without_unanswerable([(Pair("Lost it", "Write to us."), 1), (Pair("What is love?", ""), 2)])
    >>> len(kept), questions
    (1, ['What is love?'])
    """
    kept, questions = [], []
    for pair, row in rows:
        if not is_unanswerable(pair):
            kept.append((pair, row))
        elif pair.is_positive:
            questions.append(pair.query)
    return kept, questions
