"""Why a pair classifier scored as it did: cells of words that met, words of one text alone, features by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from matchloom.fitting.pair_features import SCALE, is_similarity, letter
from matchloom.search.reader import Positions
from matchloom.text.tokenize import stems
from matchloom.traces import empty_grid, grid_trace
from matchloom.types import Component, Pair, Trace

if TYPE_CHECKING:
    from matchloom.fitting.pair_classifier import Columns, PairClassifier

CHANNELS = ["shared words", "words that differ"]
_SHOWN = 20  # words of one text alone that have a component each
Floats = NDArray[np.float64]


def traced(classifier: PairClassifier, query: str, text: str) -> tuple[list[str], list[str], Trace]:
    """The words of both texts and the trace of their score.

    What both texts have is parted among the cells where it stands. What features of similarity add counts from none at
    all and is parted among words with the same stem, by rarity; what a mean pair has of it is a component.
    """
    pair = Pair(query, text)
    columns = classifier.columns([pair])
    left, right = classifier.tokenizer(query), classifier.tokenizer(text)
    values = np.concatenate([empty_grid(len(left), len(right))] * 2)
    parts = np.zeros(values.shape)
    values[0] = _same_stems(classifier, left, right)
    components = _named(classifier, columns, values[0], parts[0])
    components += _linear(classifier, columns, (left, right), values[0], parts[0])
    _word_pairs(classifier, (left, right), values[1], parts[1])
    components.append(Component("bias", 1.0, classifier.bias))
    return left, right, grid_trace(float(classifier.score([pair])[0]), values, parts, CHANNELS, components)


def _same_stems(classifier: PairClassifier, left: Sequence[str], right: Sequence[str]) -> Floats:
    """How rare the stem is that two words share. (L, R)"""
    language = classifier.tokenizer.language
    ours, theirs = stems(left, language), stems(right, language)
    rarity = [classifier.features.vocab.stem_idf(one, language) + 1e-3 for one in ours]  # also of a word of all texts
    return np.array(
        [[rare * (one == other) for other in theirs] for one, rare in zip(ours, rarity, strict=True)]
    ).reshape(len(left), len(right))


def _named(classifier: PairClassifier, columns: Columns, rarity: Floats, parts: Floats) -> list[Component]:
    """What features add: those of similarity to cells of words that are the same, each other by its name."""
    weights = SCALE * classifier.weights
    added = classifier.scaled(columns.features)[0] * weights
    none = classifier.scaled(np.zeros((1, len(weights))))[0] * weights
    in_cells = np.array([is_similarity(name) for name in classifier.names], dtype=bool) & bool(rarity.sum() > 0)
    parts += rarity / max(float(rarity.sum()), 1e-12) * float((added - none)[in_cells].sum())
    named = zip(classifier.names, columns.features[0], added, in_cells, strict=True)
    return [
        Component("similarity of a mean pair", 0.0, float(none[in_cells].sum()), 0),
        *(Component(name, float(x), float(part)) for name, x, part, inside in named if part and not inside),
    ]


def _linear(
    classifier: PairClassifier,
    columns: Columns,
    words: tuple[Sequence[str], Sequence[str]],
    values: Floats,
    parts: Floats,
) -> list[Component]:
    """What words and n-grams add: to cells where both texts have them, else to the word of one text alone."""
    places = [_positions(classifier, side) for side in words]
    alone = [np.zeros(len(side)) for side in words]
    outside = 0.0
    common = dict(zip(columns.shared.indices.tolist(), columns.shared.data.tolist(), strict=True))
    added = _contributions(classifier, columns)
    for column, value in added.items():
        ours, theirs = (_flat(side.get(column, ())) for side in places)
        if ours and theirs:
            at = np.ix_(ours, theirs)
            parts[at] += value / (len(ours) * len(theirs))
            values[at] += common.get(column, 0.0) / (len(ours) * len(theirs))
        elif (ours or theirs) and column not in common:
            alone[0 if ours else 1][ours or theirs] += value / len(ours or theirs)
        else:
            outside += value  # n-grams with what the tokenizer drops, such as a full stop
    components = _alone(words, alone)
    return [*components, Component("n-grams outside words", 0.0, outside)] if outside else components


def _contributions(classifier: PairClassifier, columns: Columns) -> Mapping[int, float]:
    """What each word and n-gram adds, whether it differs or is shared."""
    found: dict[int, float] = {}
    for matrix, weights in ((columns.differ, classifier.differ), (columns.shared, classifier.shared)):
        for column, value in zip(matrix.indices.tolist(), matrix.data.tolist(), strict=True):
            found[column] = found.get(column, 0.0) + value * float(weights[column])
    return found


def _positions(classifier: PairClassifier, words: Sequence[str]) -> Positions:
    found = classifier.seen.positions(words)
    for i, word in enumerate(words):
        for one in word:
            number = classifier.seen.number(letter(one))
            if number is not None:
                found.setdefault(number, []).append((i,))
    return found


def _flat(places: Iterable[tuple[int, ...]]) -> list[int]:
    """The different words that a feature stands in."""
    return sorted({i for place in places for i in place})


def _alone(words: tuple[Sequence[str], Sequence[str]], added: Sequence[Floats]) -> list[Component]:
    """A component for each of the words that add most though the other text does not have them, one for the rest."""
    found = [
        (f"only in the {side}: {word}", float(value))
        for side, own, values in zip(("query", "text"), words, added, strict=True)
        for word, value in zip(own, values, strict=True)
        if value
    ]
    found.sort(key=lambda one: (-abs(one[1]), one[0]))
    shown = [Component(name, 1.0, value) for name, value in found[:_SHOWN]]
    rest = sum(value for _, value in found[_SHOWN:])
    return [*shown, Component("other words of one text", float(len(found) - _SHOWN), rest)] if rest else shown


def _word_pairs(
    classifier: PairClassifier, words: tuple[Sequence[str], Sequence[str]], values: Floats, parts: Floats
) -> None:
    """What pairs of words add that one text alone has, to their cells."""
    left, right = words
    for (x, y), column in classifier.word_pair_columns(left, right).items():
        value = SCALE * float(classifier.word_pairs[column])
        if value:
            at = np.ix_([i for i, w in enumerate(left) if w == x], [j for j, w in enumerate(right) if w == y])
            parts[at] += value / parts[at].size
            values[at] = 1.0
