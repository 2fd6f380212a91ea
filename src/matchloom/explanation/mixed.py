"""Why a fusion of scores is what it is: the traces of its terms, side by side in one.

    score = sum over terms of  weight * score of the term

All terms have read the same query, each with a text of its own. The mixed trace has the query's words on one side and
on the other the words of all texts, one text behind the other; the channels of a term keep their values, and their
contributions are weighted. So they add up to the mixed score as those of each term add up to its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from matchloom.explanation.explained import Explanation
from matchloom.explanation.source import Source, source_of
from matchloom.types import Component, Explains, Scorer, Signal, Trace

if TYPE_CHECKING:
    from matchloom.lexical import Words


class Term(NamedTuple):
    """One term of a fusion. Its name stands before its channels and components."""

    name: str
    weight: float
    query: list[str]
    text: list[str]
    trace: Trace
    sources: tuple[Source | None, Source | None] = (None, None)  # of query and text


def term_of(
    name: str,
    weight: float,
    scorer: Scorer | Explains,
    query: str,
    text: str,
    score: float,
    words: Words,
) -> Term:
    """The term of a scorer that gave this pair this score; one that cannot say why is a component without words.

    `words` cuts the texts where the scorer does not.
    """
    if isinstance(scorer, Explains):
        left, right, trace = scorer.trace(query, text)
        tokenize = getattr(scorer, "tokenizer", None)
        return Term(
            name, weight, left, right, trace, (source_of(tokenize, query, left), source_of(tokenize, text, right))
        )
    left, right = words(query), words(text)
    sources = (source_of(words, query, left), source_of(words, text, right))
    nothing = np.zeros((0, len(left), len(right)), np.float32)
    whole = Component(f"score by {scorer.name}", score, score)
    return Term(name, weight, left, right, Trace(score, [], 0.0, nothing, [], [whole]), sources)


def mixed_explanation(scorer: str, terms: Sequence[Term], score: float) -> Explanation:
    """The fusion of these terms, which has this score, each text a section under its term's name.

    The score may differ from what the terms add up to in its last digits; an explanation checks that they agree.
    """
    query, text, trace = mixed_trace(terms)
    starts = _starts(len(term.text) for term in terms)
    sections = tuple((term.name, start) for term, start in zip(terms, starts, strict=True))
    of_query = next((term.sources[0] for term in terms if term.query == query), None)
    sources = (of_query, *(term.sources[1] for term in terms))
    return Explanation(scorer, query, text, trace._replace(score=score), sections, sources)


def mixed_trace(terms: Sequence[Term], *, one_text: bool = False) -> tuple[list[str], list[str], Trace]:
    """The words of both sides and the trace of the fusion. A term with no weight has words and maps, and no signals.

    Where the terms have cut the query differently, its words stand there once for each of them. With `one_text` all
    have read the same text, which is treated so too.
    """
    query, rows = _one_behind_the_other([term.query for term in terms], shared=True)
    text, columns = _one_behind_the_other([term.text for term in terms], shared=one_text)
    channels = _starts(len(term.trace.channels) for term in terms)
    names = [f"{term.name}: {channel}" for term in terms for channel in term.trace.channels]
    grid = np.zeros((len(names), len(query), len(text)), np.float32)
    signals, components, paths = [], [], []
    for term, i, j, c in zip(terms, rows, columns, channels, strict=True):
        C, L, R = term.trace.grid.shape
        grid[c : c + C, i : i + L, j : j + R] = term.trace.grid
        if not term.weight:
            continue
        signals += [
            Signal(s.left + i, s.right + j, s.channel + c, s.value, term.weight * s.contribution)
            for s in term.trace.signals
        ]
        for one in term.trace.components:
            channel = None if one.channel is None else one.channel + c
            name = f"{term.name}: {one.name}"
            components.append(Component(name, one.value, term.weight * one.contribution, channel))
        paths += [c + channel for channel in range(C) if term.trace.is_path(channel)]
    score, residual = (
        sum(term.weight * number for term, number in zip(terms, numbers, strict=True))
        for numbers in ([term.trace.score for term in terms], [term.trace.residual for term in terms])
    )
    return query, text, Trace(score, signals, residual, grid, names, components, paths)


def _one_behind_the_other(sides: Sequence[list[str]], *, shared: bool) -> tuple[list[str], list[int]]:
    """The words of all terms and where each one's start; those of the longest alone where they are `shared`."""
    longest = max(sides, key=len)
    if shared and all(side == longest[: len(side)] for side in sides):  # one may have read fewer words than another
        return longest, [0] * len(sides)
    return [word for side in sides for word in side], _starts(len(side) for side in sides)


def _starts(sizes: Iterable[int]) -> list[int]:
    return list(accumulate(sizes, initial=0))[:-1]
