"""Which words of a text spoke for it, as places in the text: what a program marks, or cites."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from matchloom.explanation.cells import word_contributions
from matchloom.explanation.explained import Explanation


class Span(NamedTuple):
    """Words that stand together: text[start:end], in code points, and what they added to the score."""

    start: int
    end: int
    contribution: float


def relevant_spans(explanation: Explanation, tokenizer: object, text: str) -> list[Span]:
    """The words of a text that raised its score, in its order; neighbours are one span.

    None where the tokenizer does not say where its words stand.

    Args:
        explanation: Of the text's score. Words before those of the text, such as a known question's, are left out.
        tokenizer: Of the scorer.
        text: The text as it was given.
    """
    spans = getattr(tokenizer, "spans", None)
    found = [] if spans is None else list(spans(text))
    before = len(explanation.text) - len(found)
    if before < 0 or [one.word for one in found] != explanation.text[before:]:
        return []
    added = word_contributions(explanation)[1][before:]
    made = []
    for raised, group in groupby(range(len(found)), lambda n: added[n] > 0):
        if raised:
            own = list(group)
            made.append(Span(found[own[0]].start, found[own[-1]].end, sum(added[n] for n in own)))
    return made
