"""What sources of community questions have in common: a question, its answer, and the papers' bounds on their words."""

from __future__ import annotations

from typing import NamedTuple

SHORTEST, LONGEST = 5, 50


class Answered(NamedTuple):
    """A question with its answer; the source and, within it, the product, topic or page they are from."""

    source: str
    group: str
    question: str
    answer: str


def within_bounds(text: str) -> bool:
    """Whether a text has 5 to 50 words between spaces (Wan et al., AAAI 2016 and IJCAI 2016)."""
    return SHORTEST <= len(text.split()) <= LONGEST
