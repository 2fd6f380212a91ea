"""Random scores, the lowest baseline: what a list gives away when nobody looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from matchloom.basics.progress import track
from matchloom.types import Pair, Scores


class RandomScorer:
    """A number in [0, 1) drawn from the seed and the pair itself, so that the order of pairs does not matter.

    >>> RandomScorer(seed=3).score([Pair("a", "b"), Pair("a", "c")])
    array([0.46650225, 0.61187935], dtype=float32)
    """

    bounds: tuple[float, float] = (0.0, 1.0)

    def __init__(self, seed: int = 0) -> None:
        self.name = "random"
        self.seed = seed

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """One number for each pair. The label has no part in it."""
        scores = np.zeros(len(pairs), np.float32)
        for n, pair in enumerate(track(pairs, self.name, show=progress)):
            content = "\0".join((str(self.seed), pair.query_id, pair.text_id, pair.query, pair.text))
            digest = blake2b(content.encode("utf-8", "surrogatepass"), digest_size=3).digest()
            scores[n] = int.from_bytes(digest, "little") / (1 << 24)  # 24 bits fit a float32 exactly
        return scores
