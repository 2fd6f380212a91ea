"""From contributions of stems and letters to pairs of words.

The right side of a trace is the matched question followed by the answer. What a feature of the question adds is parted
equally among the places where both sides have it: a stem between its words, two stems between both pairs of words,
letters between the words they lie in. A translation is parted as it was made, by what each word of the answer gives.
A feature that the right side does not have (another question of the answer does, or the classifier learnt it from other
answers) becomes a component, and so does what a mean answer gets, from which every piece of evidence is measured. A
cosine of meanings is parted among pairs of words as `sentence_bert` does it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from matchloom.search.entries import Floats, Ids
from matchloom.search.features.base import Evidence
from matchloom.search.features.dense import MeaningOfNearest, MeaningOfText, MeaningRidge
from matchloom.search.features.svm import SVMEvidence
from matchloom.search.features.translation import Translation
from matchloom.search.fusion import Mixture
from matchloom.search.memory import AskedCollection, Weighed
from matchloom.search.reader import Query
from matchloom.traces import empty_grid
from matchloom.types import Component, Signal, Trace

Cells = dict[tuple[int, int], float]
Meant = MeaningOfNearest | MeaningOfText | MeaningRidge
Places = dict[int, list[tuple[int, ...]]]  # of each feature, for each occurrence the positions of its words


class RightSide(NamedTuple):
    """The known question that a question was matched with, if any, and the text; as they are and as words."""

    question: str | None
    text: str
    matched: Sequence[str]
    told: Sequence[str]


def trace_of(
    collection: AskedCollection,
    mixture: Mixture,
    weighed: Weighed,
    contributions: Sequence[Floats],
    read: Query,
    words: Sequence[str],
    right: RightSide,
) -> Trace:
    """The trace of one question with one text, from what each piece of evidence says on them."""
    grid = np.repeat(empty_grid(len(words), len(right.matched) + len(right.told)), len(mixture.names), axis=0)
    signals: list[Signal] = []
    components: list[Component] = []
    total = 0.0
    for channel, (piece, added) in enumerate(zip(collection.evidence, contributions, strict=True)):
        factor = float(mixture.weights[channel] / weighed.spread[channel])
        mean, own = float(weighed.mean[channel]), float(added.sum())
        total += float(mixture.weights[channel]) * ((own - mean) / float(weighed.spread[channel]))
        if not factor:
            continue
        cells, elsewhere = _cells(collection, piece, added, read, words, right)
        for (i, j), value in sorted(cells.items()):
            grid[channel, i, j] = value
            signals.append(Signal(i, j, channel, value, factor * value))
        if elsewhere:
            where = "the question as a whole" if isinstance(piece, Meant) else "words elsewhere"
            components.append(Component(f"{piece.name}: {where}", elsewhere, factor * elsewhere, channel))
        components.append(Component(f"{piece.name}: a mean answer", mean, -factor * mean, channel))
    told = sum(signal.contribution for signal in signals) + sum(one.contribution for one in components)
    return Trace(total, signals, total - told, grid, list(mixture.names), components)


def _cells(
    collection: AskedCollection,
    piece: Evidence,
    added: Floats,
    read: Query,
    words: Sequence[str],
    right: RightSide,
) -> tuple[Cells, float]:
    """What each pair of words adds, and what is left."""
    reading, matched, text = collection.reading, right.matched, right.told
    if isinstance(piece, Meant):
        return _meant(piece, float(added.sum()), read, right) if words else ({}, float(added.sum()))
    if isinstance(piece, Translation):
        return _translated(collection, piece, added, read, words, len(matched), text)
    places = piece.seen.places if isinstance(piece, SVMEvidence) else reading.places
    here, there = places(words), places(text if piece.name == "bm25_ans" else [*matched, *text])
    shift = len(matched) if piece.name == "bm25_ans" else 0
    features = piece.features(read) if isinstance(piece, SVMEvidence) else getattr(read, piece.reads)
    return shared_cells(features, added, here, there, shift)


def _meant(piece: Meant, whole: float, read: Query, right: RightSide) -> tuple[Cells, float]:
    """A cosine of two means is a sum over pairs of words, and marks and punctuation; a classifier knows no words."""
    if isinstance(piece, MeaningRidge):
        return {}, whole
    meanings = piece.vectors.meanings
    x, shift, text = meanings.asked(read.text), len(right.matched), right.text
    question = right.question if isinstance(piece, MeaningOfNearest) else None
    if question is not None and x @ meanings.asked(question) >= x @ meanings.asked(right.text):
        shift, text = 0, question
    grid = meanings.cells(read.text, text)
    most = len(right.matched) + len(right.told) - shift  # a text without words has a place in the encoder's grid
    cells = {(i, j + shift): float(grid[i, j]) for i, j in np.ndindex(*grid.shape) if grid[i, j] and j < most}
    return cells, whole - sum(cells.values())


def shared_cells(features: Ids, added: Floats, left: Places, right: Places, shift: int = 0) -> tuple[Cells, float]:
    """What each feature adds, parted among the places where both sides have it; what is left is the second."""
    cells: Cells = defaultdict(float)
    elsewhere = 0.0
    for feature, value in zip(features.tolist(), added, strict=True):
        here, there = left.get(feature, []), right.get(feature, [])
        if not (here and there):
            elsewhere += float(value)
        elif value:
            for one, other in product(here, there):
                # Two stems meet two stems one by one; letters across two words meet all of theirs.
                met = list(zip(one, other, strict=True)) if len(one) == len(other) else list(product(one, other))
                for i, j in met:
                    cells[i, j + shift] += float(value) / (len(here) * len(there) * len(met))
    return cells, elsewhere


def trace_of_cells(
    score: float, cells: Cells, components: Sequence[Component], shape: tuple[int, int], channel: str
) -> Trace:
    """The trace of a score that is made of one map and named rests."""
    grid = empty_grid(*shape)
    for (i, j), value in cells.items():
        grid[0, i, j] = value
    signals = [Signal(i, j, 0, value, value) for (i, j), value in sorted(cells.items())]
    told = sum(cells.values()) + sum(one.contribution for one in components)
    return Trace(score, signals, score - told, grid, [channel], [one for one in components if one.contribution])


def _translated(
    collection: AskedCollection,
    piece: Translation,
    added: Floats,
    read: Query,
    words: Sequence[str],
    shift: int,
    text: Sequence[str],
) -> tuple[Cells, float]:
    left, right = collection.reading.terms(words), np.array(collection.reading.terms(text), dtype=np.int64)
    cells: Cells = defaultdict(float)
    elsewhere = 0.0
    for term, value in zip(read.terms.tolist(), added, strict=True):
        terms, weights = piece.stands_for(term)
        dense = np.zeros(len(collection.reading.stems) + 1)  # the last is for words that are not known
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
