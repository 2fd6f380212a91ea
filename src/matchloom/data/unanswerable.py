"""Questions of a file that have no answer: their text is blank, or it says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar
from unicodedata import category

from matchloom.types import Pair

Row = TypeVar("Row")
NO_ANSWER = "no_answer"  # as a text or text_id
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"  # letters and signs by name that show nothing


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: spaces, line ends, characters of no width.

    >>> is_blank(" \\u200b\\n"), is_blank("No.")
    (True, False)
    """
    return all(letter in _FILLERS or category(letter) in ("Cc", "Cf", "Zl", "Zp", "Zs") for letter in text)


def is_unanswerable(pair: Pair) -> bool:
    """Whether a pair says that its question has no answer."""
    return not is_blank(pair.query) and not has_answer(pair)


def has_answer(pair: Pair) -> bool:
    """Whether the text of a pair can be shown as an answer."""
    return not is_blank(pair.text) and NO_ANSWER not in (pair.text.strip().lower(), pair.text_id.lower())


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
