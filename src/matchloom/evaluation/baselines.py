"""What a result must be seen beside: baselines that any scorer should clear, and blind probes that must stay at chance.

A baseline is a simple scorer. A blind probe does not read the query (or reads another one): where it is above
chance, the candidate lists themselves give the answer away, and part of every figure on them is no matching at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from sys import intern

import numpy as np

from matchloom.evaluation.measures import CandidateLists, Measured
from matchloom.evaluation.ties import DRAWS, Chance, chance_of
from matchloom.lexical import LEXICAL, Vectors, Words, fit_scorer
from matchloom.types import Pair, Scorer

LEAK_P = 0.01
# In so few lists anything may happen to agree with the labels, and the normal approximation of p is no good.
FEWEST_LISTS = 10


@dataclass(frozen=True)
class Baseline:
    """A simple scorer's figures on the same lists."""

    name: str
    note: str
    measured: Measured


@dataclass(frozen=True)
class Probe:
    """A blind scorer's figures, and `p`: how likely they are by chance (one-sided, on the first measure).

    `telling` is False where there are fewer than ten lists, which can show no leak.
    """

    name: str
    note: str
    measured: Measured
    p: float

    @property
    def telling(self) -> bool:
        """Whether there are lists enough."""
        return len(self.measured.queries) >= FEWEST_LISTS

    @property
    def leaks(self) -> bool:
        """True where a blind scorer is above chance on ten lists or more, p < .01."""
        return self.telling and self.p < LEAK_P


@dataclass(frozen=True)
class Surroundings:
    """All that stands beside a result. `order_follows_labels`: ten lists or more have positives early, p < .01."""

    baselines: list[Baseline]
    probes: list[Probe]
    order_follows_labels: bool


def surroundings(
    pairs: Sequence[Pair],
    lists: CandidateLists,
    *,
    tokenizer: Words,
    scorer: Scorer | None = None,
    vectors: Vectors | None = None,
    collection: Iterable[str] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Surroundings:
    """Measure every baseline and probe on the lists of these pairs.

    Word statistics come from `collection`, or else from the distinct texts of the pairs. Soft coverage is there when
    `vectors` are, the shuffled probe when a `scorer` is. Chance is the mean of twenty random orders of every list;
    on ten lists or more a probe leaks when it is above it with p < .01, see Chance.p_above.
    """
    first = next(iter(lists.measures))

    @cache  # five scorers read the same texts
    def words(text: str) -> list[str]:
        return [intern(word) for word in tokenizer(text)]

    chance = chance_of(lists, np.zeros(len(lists)), seed=seed)
    listed = lists.measure(-np.arange(len(lists)))
    baselines = [
        Baseline("random", f"mean of {DRAWS} draws", chance.mean),
        Baseline("input order", "as listed", listed),
    ]
    texts = list(dict.fromkeys(collection)) if collection is not None else sorted({pair.text for pair in pairs})
    for name in LEXICAL:
        if name in ("random", "trans_lm") or (name == "soft_coverage" and vectors is None):  # trans_lm is learnt
            continue
        baseline = fit_scorer(name, texts, tokenizer=words, vectors=vectors, seed=seed)
        baselines.append(Baseline(name, "", lists.measure(baseline.score(pairs, progress=progress))))
    probes = [_length_probe(pairs, lists, words, chance, first)]
    if scorer is not None:
        shuffled = shuffle_queries(pairs, seed=seed)
        if shuffled is not None:
            measured = lists.measure(scorer.score(shuffled, progress=progress))
            p = chance.p_above(measured, first)
            probes.insert(0, Probe("queries shuffled", "another list's query", measured, p))
    order_follows_labels = len(lists.queries) >= FEWEST_LISTS and chance.p_above(listed, first) < LEAK_P
    return Surroundings(baselines, probes, order_follows_labels)


def shuffle_queries(pairs: Sequence[Pair], *, seed: int) -> list[Pair] | None:
    """Give every list the query of another; texts, labels and ids stay. None where all have the same query."""
    queries = sorted({pair.query for pair in pairs})
    if len(queries) < 2:
        return None
    circle = np.random.default_rng(seed).permutation(len(queries))
    # One circle through all different queries: none can come back to itself.
    other = {queries[i]: queries[j] for i, j in zip(circle, np.roll(circle, 1), strict=True)}
    return [pair._replace(query=other[pair.query]) for pair in pairs]


def _length_probe(pairs: Sequence[Pair], lists: CandidateLists, words: Words, chance: Chance, first: str) -> Probe:
    lengths = np.array([len(words(pair.text)) for pair in pairs])
    shorter, longer = lists.measure(-lengths), lists.measure(lengths)
    winner = shorter if shorter.values[first] > longer.values[first] else longer
    note = "shorter first" if winner is shorter else "longer first"
    # The better of two directions was picked, so the chance of either counts.
    return Probe("text length", note, winner, min(1.0, 2 * chance.p_above(winner, first)))
