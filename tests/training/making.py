"""A small task that can be learnt: the right text names the same colour."""

from __future__ import annotations

import random
from functools import partial

import matchloom
from matchloom.types import Pair

train = partial(matchloom.train, hold_out=0, vectors="random")  # on all pairs, at once

COLOURS = ["red", "green", "blue", "black", "white", "brown", "pink", "grey"]
FILLER = ["the", "a", "cloth", "of", "yarn", "is", "very", "soft", "old", "new", "loom"]


def colour_pairs(queries: int = 40, candidates: int = 4, seed: int = 0) -> list[Pair]:
    rng = random.Random(seed)
    pairs = []
    for q in range(queries):
        colours = rng.sample(COLOURS, candidates)
        query = " ".join([*rng.sample(FILLER, 3), colours[0]])
        for n, colour in enumerate(colours):
            words = [*rng.sample(FILLER, rng.randint(1, 6)), colour]
            rng.shuffle(words)
            pairs.append(Pair(query, " ".join(words), float(n == 0), f"q{q}", f"q{q}t{n}"))
    return pairs
