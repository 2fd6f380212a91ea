"""From contributions of stems and n-grams to pairs of words.

The right side of a trace is the matched question followed by the answer. What a feature of the question adds is parted
equally among the places where both sides have it: a stem between its words, two stems between both pairs of words,
n-grams between the words they lie in. A translation is parted as it was made, by what each word of the answer gives.
A feature that the right side does not have (another question of the answer does, or the classifier learnt it from other
answers) becomes a component, and so does what a mean answer gets, from which every feature is measured. A
cosine of sentence vectors is parted among pairs of words as `sentence_bert` does it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from matchloom.lexical.columns import Floats, Ids
from matchloom.search.features.base import Feature
from matchloom.search.features.dense import DenseClassifier, DenseFeature, DenseNearest
from matchloom.search.features.linear import LinearFeature
from matchloom.search.features.translation import Translation
from matchloom.search.fusion import Fusion
from matchloom.search.queries import Queries
from matchloom.search.reader import Positions, Reader
from matchloom.traces import empty_grid
from matchloom.types import Component, Signal, Trace

Cells = dict[tuple[int, int], float]
_FEW = 16  # pairs of occurrences that are sooner counted one by one


class RightSide(NamedTuple):
    """The known question that a question was matched with, if any, and the text; as they are and as words."""

    question: str | None
    text: str
    matched: Sequence[str]
    text_words: Sequence[str]


class Compared(NamedTuple):
    """What each feature adds to the score of one text, and what the scores of all entries are measured from. (E,)"""

    features: Sequence[Feature | None]  # None where it says nothing
    contributions: Sequence[Floats]
    mean: Floats
    spread: Floats


def trace_of(
    reader: Reader, fusion: Fusion, compared: Compared, query: Queries, right: RightSide, same: float = 0.0
) -> Trace:
    """The trace of one question with one text, from what each feature says of them.

    `same` is what the text was given for having exactly this question.
    """
    words = query.words[0]
    grid = np.repeat(empty_grid(len(words), len(right.matched) + len(right.text_words)), len(fusion.names), axis=0)
    signals: list[Signal] = []
    components: list[Component] = []
    total = 0.0
    there = sum(float(w) for w, one in zip(fusion.weights, compared.features, strict=True) if one is not None)
    # The features that an entry has count for those that it lacks, see `fusion`.
    more = float(fusion.weights.sum()) / there if 0 < there < float(fusion.weights.sum()) else 1.0
    for channel, (feature, added) in enumerate(zip(compared.features, compared.contributions, strict=True)):
        if feature is None:
            continue
        weight, mean, own = more * float(fusion.weights[channel]), float(compared.mean[channel]), float(added.sum())
        factor = weight / float(compared.spread[channel])
        total += weight * ((own - mean) / float(compared.spread[channel]))
        if not factor:
            continue
        cells, elsewhere = _cells(reader, feature, added, query, right)
        for (i, j), value in sorted(cells.items()):
            grid[channel, i, j] = value
            signals.append(Signal(i, j, channel, value, factor * value))
        if elsewhere:
            whole = isinstance(feature, DenseFeature) or feature.name == "joint"
            where = "the question as a whole" if whole else "words elsewhere"
            components.append(Component(f"{feature.name}: {where}", elsewhere, factor * elsewhere, channel))
        components.append(Component(f"{feature.name}: a mean answer", mean, -factor * mean, channel))
    if same:
        components.append(Component("the same question", 1.0, same))
        total += same
    explained = sum(signal.contribution for signal in signals) + sum(one.contribution for one in components)
    return Trace(total, signals, total - explained, grid, list(fusion.names), components)


def _cells(reader: Reader, feature: Feature, added: Floats, query: Queries, right: RightSide) -> tuple[Cells, float]:
    """What each pair of words adds, and what is left."""
    words, matched, text = query.words[0], right.matched, right.text_words
    if isinstance(feature, DenseFeature):
        return _dense(feature, float(added.sum()), query.texts[0], right) if words else ({}, float(added.sum()))
    if isinstance(feature, Translation):
        return _translated(reader, feature, added, query, len(matched), text)
    positions = feature.seen.positions if isinstance(feature, LinearFeature) else reader.positions
    here, there = positions(words), positions(text if feature.name == "bm25_ans" else [*matched, *text])
    shift = len(matched) if feature.name == "bm25_ans" else 0
    if isinstance(feature, LinearFeature):
        features = feature.features(query)
    else:
        features = (query.terms if feature.reads == "terms" else query.vectors).columns
    return shared_cells(features, added, here, there, shift)


def _dense(feature: DenseFeature, whole: float, asked: str, right: RightSide) -> tuple[Cells, float]:
    """A cosine of two means is a sum over pairs of words, and marks and punctuation; a classifier knows no words."""
    if isinstance(feature, DenseClassifier):
        return {}, whole
    sentences = feature.vectors.sentences
    shift, text = len(right.matched), right.text
    question = right.question if isinstance(feature, DenseNearest) else None
    if question is not None:
        shift, text = 0, question
    grid = sentences.cells(asked, text)
    most = len(right.matched) + len(right.text_words) - shift  # a text without words has a place in the encoder's grid
    cells = {(i, j + shift): float(grid[i, j]) for i, j in np.ndindex(*grid.shape) if grid[i, j] and j < most}
    return cells, whole - sum(cells.values())


def shared_cells(
    features: Ids, added: Floats, left: Positions, right: Positions, shift: int = 0
) -> tuple[Cells, float]:
    """What each feature adds, parted among the places where both sides have it; what is left is the second."""
    rows, columns = _length(left), _length(right)
    grid = np.zeros((rows, columns))
    elsewhere = 0.0
    for feature, value in zip(features.tolist(), added, strict=True):
        here, there = left.get(feature, []), right.get(feature, [])
        if not (here and there):
            elsewhere += float(value)
        elif value:
            _share(grid, float(value) / (len(here) * len(there)), here, there)
    i, j = np.nonzero(grid)
    return dict(zip(zip(i.tolist(), (j + shift).tolist(), strict=True), grid[i, j].tolist(), strict=True)), elsewhere


def _length(positions: Positions) -> int:
    return 1 + max((max(one) for some in positions.values() for one in some), default=-1)


def _share(grid: Floats, value: float, here: Sequence[tuple[int, ...]], there: Sequence[tuple[int, ...]]) -> None:
    """Part a value among all pairs of occurrences; a word that occurs a thousand times on both sides is one product."""
    if len(here) * len(there) <= _FEW:
        for one, other in product(here, there):
            met = list(zip(one, other, strict=True)) if len(one) == len(other) else list(product(one, other))
            for i, j in met:
                grid[i, j] += value / len(met)
        return
    for size, own in _by_size(here).items():
        for more, theirs in _by_size(there).items():
            # Two stems meet two stems one by one; letters across two words meet all of theirs.
            ways = [(k, k) for k in range(size)] if size == more else list(product(range(size), range(more)))
            for a, b in ways:
                rows, times = np.unique(own[:, a], return_counts=True)
                columns, as_often = np.unique(theirs[:, b], return_counts=True)
                grid[rows[:, None], columns] += value / len(ways) * np.outer(times, as_often)


def _by_size(positions: Sequence[tuple[int, ...]]) -> dict[int, Ids]:
    found: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for one in positions:
        found[len(one)].append(one)
    return {size: np.array(some) for size, some in found.items()}


def trace_of_cells(
    score: float, cells: Cells, components: Sequence[Component], shape: tuple[int, int], channel: str
) -> Trace:
    """The trace of a score that is made of one map and named rests."""
    grid = empty_grid(*shape)
    for (i, j), value in cells.items():
        grid[0, i, j] = value
    signals = [Signal(i, j, 0, value, value) for (i, j), value in sorted(cells.items())]
    explained = sum(cells.values()) + sum(one.contribution for one in components)
    return Trace(score, signals, score - explained, grid, [channel], [one for one in components if one.contribution])


def _translated(
    reader: Reader, feature: Translation, added: Floats, query: Queries, shift: int, text: Sequence[str]
) -> tuple[Cells, float]:
    left, right = reader.terms(query.words[0]), np.array(reader.terms(text), dtype=np.int64)
    cells: Cells = defaultdict(float)
    elsewhere = 0.0
    for term, value in zip(query.terms.columns.tolist(), added, strict=True):
        terms, weights = feature.stands_for(term)
        dense = np.zeros(reader.size + 1)  # the last is for words that are not known
        dense[terms] = weights
        shares = dense[right]
        here = [i for i, one in enumerate(left) if one == term]
        if not (shares.sum() > 0 and here):
            elsewhere += float(value)
            continue
        shares /= shares.sum()
        for j in np.flatnonzero(shares).tolist():
            for i in here:
                cells[i, j + shift] += float(value * shares[j]) / len(here)
    return cells, elsewhere
