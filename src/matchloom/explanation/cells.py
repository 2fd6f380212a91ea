"""From a trace to what a person reads: signals with their words, what each word added, what to show of long texts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.explanation.explained import Explanation
from matchloom.pages.numbers import decimals
from matchloom.types import Component, MatchloomError, Signal

_LEADING, _LEADING_WORDS = 0.35, 4  # of what the strongest word added; how many are named


class Cell(NamedTuple):
    """A signal in words. Positions count from 0; `channel` is its name."""

    query_word: str
    text_word: str
    query_position: int
    text_position: int
    channel: str
    value: float
    contribution: float


def ordered_signals(explanation: Explanation) -> list[Signal]:
    """The signals, those that moved the score most first; equal ones by position and channel."""
    return sorted(explanation.trace.signals, key=lambda s: (-abs(s.contribution), s.left, s.right, s.channel, s.value))


def cells(explanation: Explanation) -> list[Cell]:
    """The signals in words, those that moved the score most first."""
    query, text, channels = explanation.query, explanation.text, explanation.trace.channels
    return [
        Cell(query[s.left], text[s.right], s.left, s.right, channels[s.channel], float(s.value), float(s.contribution))
        for s in ordered_signals(explanation)
    ]


def ordered_components(explanation: Explanation) -> list[Component]:
    """The contributions that belong to no pair of words, those that moved the score most first."""
    return sorted(
        explanation.trace.components,
        key=lambda component: (-abs(component.contribution), component.name, component.value),
    )


def largest_first(explanation: Explanation) -> list[Cell | Component]:
    """Signals and components together, those that moved the score most first."""
    return sorted([*cells(explanation), *ordered_components(explanation)], key=lambda one: -abs(one.contribution))


def paths(explanation: Explanation) -> dict[int, list[tuple[int, int]]]:
    """For each channel whose signals are a way through its map: the cells (query, text position) in their order."""
    found: dict[int, list[tuple[int, int]]] = {}
    for signal in explanation.trace.signals:
        if explanation.trace.is_path(signal.channel):
            found.setdefault(signal.channel, []).append((signal.left, signal.right))
    return found


def word_contributions(explanation: Explanation) -> tuple[list[float], list[float]]:
    """What each query word and each text word added to the score; either list adds up to what signals added."""
    query, text = [0.0] * len(explanation.query), [0.0] * len(explanation.text)
    for signal in explanation.trace.signals:
        query[signal.left] += float(signal.contribution)
        text[signal.right] += float(signal.contribution)
    return query, text


def leading_words(explanation: Explanation, function_words: Collection[str] = ()) -> list[str]:
    """The few words of the query that a sentence names as the reason: what added most, and no function word.

    >>> from matchloom import BM25, explain
    >>> leading_words(explain(BM25.fit(["a lost key", "an open door"]), "is it a lost key", "a lost key"), ["a", "is"])
    ['key', 'lost']
    """
    added: dict[str, float] = {}
    for word, contribution in zip(explanation.query, word_contributions(explanation)[0], strict=True):
        if word.lower() not in function_words and any(letter.isalnum() for letter in word):
            added[word] = added.get(word, 0.0) + contribution
    least = _LEADING * max(added.values(), default=0.0)
    counted = [word for word, contribution in added.items() if contribution > 0 and contribution >= least]
    return sorted(counted, key=lambda word: (-added[word], word))[:_LEADING_WORDS]


def channel_contributions(explanation: Explanation) -> list[float]:
    """What each channel added to the score, by pairs of words and by components of its own."""
    contributions = [0.0] * len(explanation.trace.channels)
    for signal in explanation.trace.signals:
        contributions[signal.channel] += float(signal.contribution)
    for component in explanation.trace.components:
        if component.channel is not None:
            contributions[component.channel] += float(component.contribution)
    return contributions


def choose_channel(explanation: Explanation, name: str | None = None) -> int:
    """The index of the named channel, or of the one that moved the score most."""
    channels = explanation.trace.channels
    if name is not None:
        if name not in channels:
            known = ", ".join(channels)
            raise MatchloomError(
                f"channel {name!r} is unknown to {explanation.scorer}; choose one of {known}", code="unknown_name"
            )
        return channels.index(name)
    contributions = channel_contributions(explanation)
    return max(range(len(contributions)), key=lambda c: (abs(contributions[c]), -c), default=0)


def word_weights(explanation: Explanation) -> tuple[dict[int, float], dict[int, float]]:
    """The positions of either side that took part in the score, with how much they moved it up and down together."""
    query: dict[int, float] = {}
    text: dict[int, float] = {}
    for signal in explanation.trace.signals:
        query[signal.left] = query.get(signal.left, 0.0) + abs(float(signal.contribution))
        text[signal.right] = text.get(signal.right, 0.0) + abs(float(signal.contribution))
    return query, text


def worth_showing(words: int, weights: Mapping[int, float], limit: int) -> list[int]:
    """The positions of a long text to show, in order: words that took part first, then those nearest to one."""
    if words <= limit:
        return list(range(words))
    took_part = sorted(weights)

    def distance(i: int) -> int:
        at = bisect_left(took_part, i)
        return min((abs(i - j) for j in took_part[max(0, at - 1) : at + 1]), default=0)

    return sorted(sorted(range(words), key=lambda i: (distance(i), -weights.get(i, 0.0), i))[:limit])


class Scale(NamedTuple):
    """The two ends of a map's colours. Where signs mix they lie evenly about 0, so that no colour means no signal.

    Values of one sign run from the weakest to the strongest: cosines between .6 and .9 would otherwise all look alike.
    """

    low: float
    high: float

    @classmethod
    def of(cls, values: NDArray[np.float32]) -> Scale:
        """The scale of a map."""
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        if low < 0 < high:
            high = max(-low, high)
            low = -high
        return cls(low, high)

    def strength(self, value: float) -> float:
        """How strongly to colour a value: -1 to 1, below 0 for negative values."""
        low, high = self
        if low < 0 < high:
            return value / high
        if low == high:
            return float(np.sign(value))
        return (value - low) / (high - low) if low >= 0 else (value - high) / (high - low)


def decimal_places(explanation: Explanation) -> int:
    """Places behind the point of the score, its residual and contributions, so that they can be added up by eye."""
    trace = explanation.trace
    contributions = [
        *(signal.contribution for signal in trace.signals),
        *(component.contribution for component in trace.components),
    ]
    return decimals([trace.score, trace.residual, *contributions])
