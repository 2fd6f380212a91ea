"""Topics of paired texts: latent Dirichlet allocation by Gibbs sampling (tomotopy), one document for each pair.

A word of a left text and the same word of a right text are different terms, so that a topic tells which left words
go with which right words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchloom.basics.extras import need
from matchloom.basics.progress import track

Words = NDArray[np.int64]
_SIDES = ("l", "r")
_AT_ONCE = 10  # iterations between two moves of the bar


class Topic(NamedTuple):
    """The words of either side that a topic makes likely, the likeliest first."""

    left: list[int]
    right: list[int]


def paired_topics(
    pairs: Sequence[tuple[Words, Words]],
    topics: int,
    words: int,
    *,
    iterations: int,
    seed: int,
    progress: bool = False,
) -> list[Topic]:
    """Learn topics from pairs of texts as word ids; each has at most `words` words of either side.

    A word belongs to a topic only if the topic makes it likelier than a term drawn at random: where a topic is narrow,
    what follows its own words are words it never held, in no order. Terms are weighted by rarity, or function words
    would be among the likeliest of many topics. Same seed, same topics, whatever `progress` is; another processor may
    round otherwise.
    """
    tomotopy = need("tomotopy", "deep_match")

    model = tomotopy.LDAModel(k=topics, tw=tomotopy.TermWeight.IDF, seed=seed)
    for pair in pairs:
        terms = [f"{side}{word}" for side, text in zip(_SIDES, pair, strict=True) for word in text.tolist()]
        model.add_doc(terms, ignore_empty_words=True)
    if not model.docs:
        return [Topic([], []) for _ in range(topics)]
    # In the same steps with and without a bar: a break draws from the random state. One worker, or the draws race.
    steps = [min(_AT_ONCE, iterations - start) for start in range(0, iterations, _AT_ONCE)]
    for step in track(steps, f"finding {topics} topics", show=progress):
        model.train(step, workers=1)
    terms = list(model.used_vocabs)
    sides = np.array([term[0] for term in terms])
    ids = np.array([int(term[1:]) for term in terms])
    found = []
    for t in range(topics):
        likely = np.asarray(model.get_topic_word_dist(t))
        # Rounding must not let a topic without words hold them all. Of equally likely words the smaller id is first.
        order = np.lexsort((ids, -likely))[: int((likely > 1.001 / len(terms)).sum())]
        found.append(Topic(*(ids[order[sides[order] == side]][:words].tolist() for side in _SIDES)))
    return found
