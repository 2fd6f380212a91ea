"""Words that moved a score, for a question or pair that a report shows."""

from __future__ import annotations

from dataclasses import replace

from matchloom.explanation import explain
from matchloom.explanation.cells import word_contributions
from matchloom.fitting.report import Asked
from matchloom.types import Explains, Scorer

_SHOWN = 5


def moved_most(scorer: Scorer, asked: Asked) -> Asked:
    """The same with the words of the question that moved the score of its first text most."""
    if not isinstance(scorer, Explains):
        return asked
    explanation = explain(scorer, asked.question, asked.first)
    moved: dict[str, float] = {}
    for word, contribution in zip(explanation.query, word_contributions(explanation)[0], strict=True):
        moved[word] = moved.get(word, 0.0) + contribution
    largest = sorted(moved.items(), key=lambda one: (-abs(one[1]), one[0]))[:_SHOWN]
    return replace(asked, words=[(word, contribution) for word, contribution in largest if contribution])
