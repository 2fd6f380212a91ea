"""An encoder whose last layers have learnt which pairs match, and what it says of pairs that it has not seen.

As with questions and answers (`search/features/tuned.py`) an encoder is tuned without each of three folds, beside the
one that learns from all. Pairs with a text in common are in one fold. Of very many pairs it learns from some, and has
seen none of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.basics.parallel import usable_cores
from matchloom.calibration import labels
from matchloom.data.identity import both_sides
from matchloom.data.splits import fold_labelled
from matchloom.search.features.dense import SentenceVectors
from matchloom.search.features.tuned import (
    can_be_tuned,
    pass_seconds,
    transformer_of,
    tuned_side_by_side,
    with_layers,
)
from matchloom.text.tokenize import replace_surrogates
from matchloom.types import Pair

if TYPE_CHECKING:
    from torch import nn

FOLDS = 3
FEWEST, MOST = 300, 6_000  # pairs that it learns from
_EPOCHS, _MANY, _EPOCHS_OF_MANY = 3, 1_500, 2
_START = 4.0  # seconds before the first pass, and of what is learnt from the new cosines
Floats = NDArray[np.float64]


class TunedPairs(NamedTuple):
    """The tuned encoder, and the cosines of the pairs by encoders that were tuned without them."""

    sentences: SentenceVectors
    held_out: Floats  # (B,)


def pairs_can_tune(sentences: SentenceVectors | None, pairs: Sequence[Pair]) -> bool:
    """Whether this is a transformer, and there are pairs enough to see whether it helped."""
    return len(pairs) >= FEWEST and can_be_tuned(sentences)


def worth_keeping(gap: Floats) -> bool:
    """Whether held-out pairs, of each of which this is the gain, are better by more than a standard error."""
    return bool(gap.mean() > gap.std() / np.sqrt(len(gap)))


def pair_tuning_seconds(pairs: Sequence[Pair]) -> float:
    """A guess of how long tuning a small encoder on pairs takes, with the folds side by side."""
    some = pairs[:MOST]
    times = _epochs(len(some)) * max(1.0, FOLDS / usable_cores())  # all, and three times two thirds
    return _START + times * sum(pass_seconds(text) for pair in some for text in (pair.query, pair.text))


def tune_on_pairs(sentences: SentenceVectors, pairs: Sequence[Pair]) -> TunedPairs:
    """Tune on labelled pairs in an order that does not depend on the file's; of many on the first."""
    from matchloom.training.encoder_tuning import LowerOutputs, layers_tuned_by_pairs

    pairs = [pair._replace(query=replace_surrogates(pair.query), text=replace_surrogates(pair.text)) for pair in pairs]
    texts = sorted(both_sides(pairs))
    numbers = {text: n for n, text in enumerate(texts)}
    rows = np.array([[numbers[pair.query], numbers[pair.text]] for pair in pairs])
    read, right = sentences.matcher.reader.text_pieces, labels(pairs)
    lower = LowerOutputs(transformer_of(sentences), [read(text).ids for text in texts])
    homes = np.full(len(pairs), -1)
    homes[:MOST] = fold_labelled(pairs[:MOST], FOLDS)

    def work(held: int, stopped: Callable[[], bool]) -> nn.ModuleList:
        own = np.flatnonzero((homes >= 0) & (homes != held))
        epochs = _epochs(int((homes >= 0).sum()))
        return layers_tuned_by_pairs(lower, rows[own], right[own], epochs, stopped=stopped)

    every = tuned_side_by_side(work, int(homes.max()) + 1)
    found = np.empty(len(pairs))
    for fold, layers in enumerate(every, start=-1):  # those that none learnt from are in fold -1
        vectors, held = lower.vectors(layers).astype(np.float64), homes == fold
        found[held] = (vectors[rows[held, 0]] * vectors[rows[held, 1]]).sum(axis=1)
    return TunedPairs(with_layers(sentences, every[0]), found)


def _epochs(pairs: int) -> int:
    return _EPOCHS if pairs <= _MANY else _EPOCHS_OF_MANY
