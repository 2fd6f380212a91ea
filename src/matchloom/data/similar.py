"""How like each other the questions of a file are: near copies, and clusters of similar ones.

Two questions of one answer are similar where half of their letter triples are the same (`checkup/near.py`). Similar
ones, and those similar to these, are a cluster: often one author's phrasing, or one question copied and changed. What
a system says of a question whose cluster it knows tells little of what it says where people ask in other words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matchloom.data.checkup.near import near_pairs
from matchloom.data.identity import answers_of, components, normalize_text
from matchloom.types import Pair

COPY, SIMILAR = 0.8, 0.5  # of the letter triples of both


class Clusters(NamedTuple):
    """The cluster of each question (normalised), and how many have a near copy or a similar one with their answer."""

    of: dict[str, int]
    copies: int
    similar: int


def similar_questions(pairs: Sequence[Pair]) -> Clusters:
    """From the positive pairs.

    >>> found = similar_questions([Pair(q, "It is.") for q in ("Is it on?", "is it on", "Are the lights burning?")])
    >>> found.copies, len(set(found.of.values()))
    (2, 2)
    """
    positives = [pair for pair in pairs if pair.is_positive]
    homes: dict[str, set[int]] = {}
    for pair, answer in zip(positives, answers_of(positives), strict=True):
        if question := normalize_text(pair.query):
            homes.setdefault(question, set()).add(answer)
    questions = sorted(homes)
    keys: list[list[int]] = [[n] for n in range(len(questions))]
    similar, copies = set(), set()
    for near in near_pairs(questions, SIMILAR):
        if homes[questions[near.first]] & homes[questions[near.second]]:
            keys[near.second].append(near.first)
            similar |= {near.first, near.second}
            if near.similarity >= COPY:
                copies |= {near.first, near.second}
    return Clusters(dict(zip(questions, components(keys), strict=True)), len(copies), len(similar))
